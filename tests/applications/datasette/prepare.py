"""Makes the database that is published."""

import sqlite3

with sqlite3.connect("shop.db") as database:
    database.execute("create table items (id integer primary key, name text, price real)")
    rows = [(number, f"item {number}", number / 4) for number in range(5000)]
    database.executemany("insert into items values (?, ?, ?)", rows)
database.close()
