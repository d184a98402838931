extension RepositoryCheck.Result {
  /// The hosts and their snapshots that are accepted: one that no trusted signer signed may name
  /// any host.
  public var hosts: [HostSnapshots] {
    let accepted = run.snapshots.lazy.filter { run.check.repository.refusal(of: $0) == nil }
    return HostSnapshots.grouped(accepted.map { ($0.snapshot.host, $0.snapshot.time) })
  }
}
