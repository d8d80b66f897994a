"""Tests of shop.py with Bridgehead's fixtures: `pytest examples/testing`. Nothing is imported for them.

docs/testing.md explains each fixture.
"""

import pytest


@pytest.fixture
def shop(serve_app, faulty_upstream):
    """The shop in a process of its own, and the service that it asks, whose faults a test chooses."""
    prices = faulty_upstream(body_size=300)
    return serve_app("shop:app", env={"PRICES_URL": prices.url}), prices


def test_prices_are_passed_on(shop):
    server, prices = shop
    assert server.client.get("/prices").content == b"x" * 300
    assert prices.counts["requests"] == 1


def test_a_broken_upstream_is_a_503_and_not_a_500(shop):
    server, prices = shop
    for fault in ("error_rate", "reset_rate", "hang_rate"):
        prices.change(**{"error_rate": 0, "reset_rate": 0, "hang_rate": 0, fault: 1})
        assert server.client.get("/prices").status_code == 503


def test_visitors_are_answered_in_time_while_prices_are_slow(shop, load):
    server, prices = shop
    prices.change(latency="100ms", jitter="50ms")
    load(server, "/prices", connections=2, requests=4)
    load(server, "/", connections=4, requests=400).assert_slo(p99="1s", errors=0)


def test_clients_that_misbehave_keep_nobody_waiting(shop, slow_client, resetting_client, half_closing_client):
    server, _ = shop
    slow = slow_client(server, "/", pause=0.001)
    resetting_client(server, "/prices").reset()
    assert half_closing_client(server).answer().body == b"a shop\n"
    assert slow.answer().status == 200
