//! A short run of the soak test; `cargo bench` runs the long one.

#[path = "../../bench/rows/clients.rs"]
mod clients;

#[test]
fn three_clients_with_servers_of_their_own_work_on_one_folder() {
    let report = clients::work(2_000);
    println!("{report}");
    assert!(report.answers() >= 2_000);
}
