//! What a forked child must close is known exactly while it is open.

#![cfg(target_os = "linux")]

use std::os::fd::AsRawFd;

use bridgehead_net::Stage;

use crate::harness::{GET, LONG, Site, listener, plain, within};

/// Our descriptors of the connections and listeners at a local port; these tests share the process with all others.
fn owned_at(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("procfs");
    let local = format!(":{port:04X}");
    let inodes: Vec<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.len() > 9 && fields[1].ends_with(&local))
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect();
    bridgehead_net::open_descriptors()
        .filter_map(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).ok())
        .filter(|link| inodes.iter().any(|inode| link.as_os_str() == inode.as_str()))
        .count()
}

#[tokio::test]
async fn listeners_and_clients_are_ours_until_they_are_closed() {
    let listener = listener();
    let port = listener.local_addr().expect("an address").port();
    let number = listener.as_raw_fd();
    let mut site = Site::on(listener, plain(LONG));
    assert!(bridgehead_net::open_descriptors().any(|one| one == number));
    let (first, asked) = site.ask(GET).await;
    let (second, other) = site.ask(GET).await;
    assert_eq!(owned_at(port), 3);
    site.advance(Stage::Aborting);
    within(&mut site.served).await.expect("it ends");
    assert_eq!(owned_at(port), 0);
    drop((first, second, asked, other));
}
