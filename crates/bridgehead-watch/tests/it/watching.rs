//! What a developer's tools do to files, and what is reported of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bridgehead_watch::{Method, Pattern, Report, Selection, Watch};

/// Only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(20);
const DELAY: Duration = Duration::from_millis(20);

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bridgehead-watch-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path.canonicalize().expect("a folder"))
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Watched {
    _watch: Watch,
    reports: Receiver<Report>,
}

impl Watched {
    fn new(folder: &Path, method: Method) -> Self {
        let patterns = |texts: &[&str]| texts.iter().map(|text| Pattern::new(text)).collect();
        let selection = Selection {
            folders: vec![folder.to_owned()],
            include: patterns(&["*.py", ".env"]),
            exclude: patterns(&[".*", "__pycache__"]),
            left_out: vec![folder.join("build")],
        };
        let (sender, reports) = channel();
        let watch = Watch::start(selection, method, DELAY, move |report| drop(sender.send(report)))
            .expect("a thread");
        Self { _watch: watch, reports }
    }

    /// What is reported next: that changes begin, and then all of them.
    fn changed(&self) -> Vec<PathBuf> {
        assert_eq!(self.reports.recv_timeout(PATIENCE), Ok(Report::Begun));
        match self.reports.recv_timeout(PATIENCE).expect("a report") {
            Report::Changed(paths) => paths,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the report that names `path`: what came before may be told in reports of its own.
    fn tells_of(&self, path: &Path) {
        while !self.changed().iter().any(|changed| changed == path) {}
    }

    /// Nothing has been reported, as a change that comes after shows.
    fn was_quiet(&self, folder: &Folder) {
        let witness = folder.write("witness.py", "");
        assert_eq!(self.changed(), [witness]);
    }
}

const METHODS: [Method; 2] = [Method::Native, Method::Polling];

#[test]
fn a_file_that_is_written_made_touched_renamed_or_removed_is_reported() {
    for method in METHODS {
        let folder = Folder::new();
        let main = folder.write("main.py", "1");
        let watched = Watched::new(&folder.0, method);
        fs::write(&main, "22").expect("a file");
        watched.tells_of(&main);
        let other = folder.write("web/other.py", "1");
        watched.tells_of(&other);
        fs::File::open(&main)
            .expect("a file")
            .set_modified(std::time::SystemTime::UNIX_EPOCH)
            .expect("a time");
        watched.tells_of(&main);
        // How editors save: beside it, then over it.
        let beside = folder.write("main.py.tmp", "333");
        fs::rename(&beside, &main).expect("a rename");
        watched.tells_of(&main);
        fs::remove_file(&other).expect("a file");
        watched.tells_of(&other);
    }
}

#[test]
fn what_does_not_count_is_not_reported() {
    for method in METHODS {
        let folder = Folder::new();
        folder.write("env/pyvenv.cfg", "");
        folder.write("env/lib/site.py", "");
        folder.write(".git/hook.py", "");
        folder.write("build/made.py", "");
        folder.write("main.py", "");
        let watched = Watched::new(&folder.0, method);
        folder.write("env/lib/site.py", "changed");
        folder.write(".git/hook.py", "changed");
        folder.write("build/made.py", "changed");
        folder.write("__pycache__/main.py", "new");
        folder.write("data.sqlite", "new");
        fs::read(folder.at("main.py")).expect("a file");
        watched.was_quiet(&folder);
    }
}

#[test]
fn rights_that_change_are_no_change() {
    for method in METHODS {
        let folder = Folder::new();
        let files = [folder.write("main.py", ""), folder.write("web/other.py", "")];
        let watched = Watched::new(&folder.0, method);
        for file in &files {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("rights");
        }
        watched.was_quiet(&folder);
    }
}

#[test]
fn a_named_file_counts_though_its_kind_is_excluded() {
    for method in METHODS {
        let folder = Folder::new();
        let watched = Watched::new(&folder.0, method);
        let named = folder.write(".env", "A=1");
        watched.tells_of(&named);
    }
}

#[test]
fn changes_that_come_together_are_one_report() {
    for method in METHODS {
        let folder = Folder::new();
        let mut files: Vec<_> = (0..20).map(|number| folder.write(&format!("{number}.py"), "")).collect();
        files.sort();
        let selection = Selection {
            folders: vec![folder.0.clone()],
            include: vec![Pattern::new("*.py")],
            ..Selection::default()
        };
        let (sender, reports) = channel();
        let delay = Duration::from_millis(500);
        let _watch = Watch::start(selection, method, delay, move |report| drop(sender.send(report)));
        for file in &files {
            fs::write(file, "changed").expect("a file");
        }
        assert_eq!(reports.recv_timeout(PATIENCE), Ok(Report::Begun));
        assert_eq!(reports.recv_timeout(PATIENCE), Ok(Report::Changed(files)));
    }
}

#[test]
fn folders_that_come_move_and_go_are_followed() {
    for method in METHODS {
        let folder = Folder::new();
        let watched = Watched::new(&folder.0, method);
        let deep = folder.write("a/b/c/deep.py", "1");
        watched.tells_of(&deep);
        fs::rename(folder.at("a"), folder.at("moved")).expect("a rename");
        let moved = folder.at("moved/b/c/deep.py");
        watched.tells_of(&moved);
        fs::write(&moved, "22").expect("a file");
        watched.tells_of(&moved);
        fs::remove_dir_all(folder.at("moved")).expect("a folder");
        watched.tells_of(&moved);
        let again = folder.write("a/b/c/deep.py", "333");
        watched.tells_of(&again);
        fs::write(&again, "4444").expect("a file");
        watched.tells_of(&again);
    }
}

#[test]
fn a_package_that_is_moved_away_is_reported() {
    for method in METHODS {
        let (folder, elsewhere) = (Folder::new(), Folder::new());
        let file = folder.write("package/module.py", "");
        let watched = Watched::new(&folder.0, method);
        fs::rename(folder.at("package"), elsewhere.at("package")).expect("a rename");
        let changed = watched.changed();
        assert!(changed.contains(&file) || changed.contains(&folder.at("package")), "{changed:?}");
    }
}

#[test]
fn the_folder_at_the_top_may_be_made_again() {
    for method in METHODS {
        let folder = Folder::new();
        let top = folder.at("top");
        let file = folder.write("top/main.py", "1");
        let watched = Watched::new(&top, method);
        fs::remove_dir_all(&top).expect("a folder");
        watched.tells_of(&file);
        folder.write("top/main.py", "22");
        watched.tells_of(&file);
        fs::write(&file, "333").expect("a file");
        watched.tells_of(&file);
    }
}

#[test]
fn links_to_folders_are_followed_and_circles_end() {
    for method in METHODS {
        let (folder, elsewhere) = (Folder::new(), Folder::new());
        elsewhere.write("module.py", "1");
        std::os::unix::fs::symlink(&elsewhere.0, folder.at("linked")).expect("a link");
        std::os::unix::fs::symlink(&folder.0, folder.at("circle")).expect("a link");
        let watched = Watched::new(&folder.0, method);
        elsewhere.write("module.py", "22");
        watched.tells_of(&folder.at("linked/module.py"));
    }
}

#[test]
fn who_writes_without_end_does_not_keep_the_report_back() {
    let folder = Folder::new();
    let watched = Watched::new(&folder.0, Method::Native);
    let (stop, stopped) = channel::<()>();
    let busy = folder.at("busy.py");
    let writer = std::thread::spawn({
        let busy = busy.clone();
        move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                fs::write(&busy, "again").expect("a file");
            }
        }
    });
    assert_eq!(watched.changed(), [busy]);
    drop(stop);
    writer.join().expect("the writer ends");
}
