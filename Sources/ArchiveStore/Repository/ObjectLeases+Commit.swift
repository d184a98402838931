internal import Codecs
internal import SystemIO

// The commit of a snapshot in a store without rename (docs/repository-format.md, "Stores without
// rename").
extension ObjectLeases {
  /// The number of times that a program may find its lease dead before it gives up.
  private static let attempts = 8

  func commit(
    _ snapshot: EncodedObject, by lease: Lease, renew: () throws(StoreError) -> Void
  ) throws(StoreError) {
    let path = storage.layout.snapshot(snapshot.id)
    try commit(snapshot, as: path, by: lease, renew: renew)
  }

  /// Puts a snapshot as pending, and then under its name if its lease is alive. It is committed if
  /// the lease is still alive after that: a program that removes packs would have marked the lease
  /// before it listed the snapshots, so it knows this one.
  func commit(
    _ snapshot: EncodedObject, as path: ObjectPath, by lease: Lease,
    renew: () throws(StoreError) -> Void
  ) throws(StoreError) {
    let pending = RepositoryLayout.pending.appending(path.name)
    var (mayBePut, isPut) = (false, false)
    do throws(StoreError) {
      try storage.save(snapshot.bytes, as: pending, by: lease.path)
      for _ in 0..<Self.attempts {
        if try lease.isDead() {
          try renew()
          // Again, because a program may have removed it with the dead lease.
          try storage.save(snapshot.bytes, as: pending, by: lease.path)
        } else if isPut {
          // Removed with the lease: until then it only protects what the snapshot protects.
          lease.leave(pending)
          return
        } else {
          mayBePut = true
          try storage.save(snapshot.bytes, as: path, by: lease.path)
          isPut = true
        }
      }
      throw Lease.lost(storage.location)
    } catch {
      // Even after a failure of the store: it may have been put although its answer was lost. The
      // next run makes another one. The pending object protects what it needs, so it is removed
      // last, and remains if the snapshot does.
      if mayBePut {
        do { try storage.remove(path) } catch _ { throw Self.left(path, error) }
      }
      try? storage.remove(pending)
      throw error
    }
  }

  /// Returns the error for a snapshot whose commit failed, and whose removal did or has no answer.
  private static func left(_ path: ObjectPath, _ error: StoreError) -> StoreError {
    StoreError(
      error.code, "verify the commit of", subject: "snapshot \(path.name.description.prefix(8))",
      reason: "it may be listed; the store failed: cannot \(error.action) '\(error.subject)': "
        + error.reason,
      hint: error.hint, cause: error.cause)
  }

  func pendingSnapshots(for action: String) throws(StoreError) -> [Digest: ObjectPath] {
    var pending: [Digest: ObjectPath] = [:]
    for name in try storage.list(RepositoryLayout.pending) {
      guard let id = storage.layout.id(name, kind: .snapshot) else { continue }
      pending[id] = RepositoryLayout.pending.appending(name)
    }
    return pending
  }
}
