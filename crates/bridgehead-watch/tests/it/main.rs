//! Watching real folders: what is written is reported, by either method.

mod watching;
