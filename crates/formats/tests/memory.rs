//! How much memory an event takes once it is read.
#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

mod corpus;

#[test]
fn an_event_takes_no_more_than_its_columns() {
    for name in ["large/gpt_long_python.pickle.zst", "recordings/gpt_train/step20.pickle.zst"] {
        let (read, _) = corpus::read(&corpus::bytes(name));
        let snapshot = read.unwrap().snapshot;
        let memory: usize = snapshot.devices.iter().map(|d| d.events.memory()).sum();
        // The budget is 64 bytes; the columns hold 33.
        assert!(
            memory <= 34 * snapshot.n_events(),
            "{name}: {memory} bytes for {} events",
            snapshot.n_events()
        );
    }
}
