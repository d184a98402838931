internal import Codecs
internal import SystemIO

/// Leases in a store with rename: directories (docs/repository-format.md, "Leases").
struct DirectoryLeases: LeaseForm {
  let storage: RepositoryStorage

  init(_ storage: RepositoryStorage) { self.storage = storage }

  var removalBatch: Int { 64 }

  func mayTakeReaderLease() -> Bool {
    (try? storage.status(RepositoryLayout.leases)) != nil
  }

  /// Creates the directory, and that of leases if it is missing, because copy tools omit it when it
  /// is empty.
  func make(_ lease: ObjectPath) throws(StoreError) {
    do throws(StoreError) {
      try storage.makeDirectories([lease.name], in: RepositoryLayout.leases)
    } catch {
      guard error.code == .missing else { throw error }
      try storage.makeMissing([RepositoryLayout.leases.name], in: .root)
      try storage.makeDirectories([lease.name], in: RepositoryLayout.leases)
    }
  }

  var firstSigns: [ByteString] { [Lease.alive, LeaseStatus.Owner.sign] }

  func isDead(_ lease: ObjectPath) -> Bool { false }

  func save(
    _ bytes: [UInt8], as object: ObjectPath, by lease: Lease, renew: () throws(StoreError) -> Void
  ) throws(StoreError) {
    try save(bytes, as: object, by: lease)
  }

  private func save(
    _ bytes: [UInt8], as object: ObjectPath, by lease: Lease
  ) throws(StoreError) {
    let path = lease.path
    try lease.explained { () throws(StoreError) in try storage.save(bytes, as: object, by: path) }
  }

  /// Saves it by a rename out of the lease, which fails if the lease was taken away.
  func commit(
    _ snapshot: EncodedObject, by lease: Lease, renew: () throws(StoreError) -> Void
  ) throws(StoreError) {
    try save(snapshot.bytes, as: storage.layout.snapshot(snapshot.id), by: lease)
  }

  func claim(
    _ object: ObjectPath, as name: ByteString, by lease: Lease
  ) throws(StoreError) -> ClaimedObject? {
    guard let aside = try moveAway(object, as: name, by: lease) else { return nil }
    return ClaimedObject(
      discard: { try? storage.remove(aside) },
      putBack: { () throws(StoreError) in try storage.rename(aside, to: object) })
  }

  /// Moves an object into the lease's directory, from where it is removed at the latest with the
  /// lease. Returns its new path, or nil if the object is already gone. If the lease was removed,
  /// the object stays, because another program may own one of the same name by then.
  private func moveAway(
    _ object: ObjectPath, as name: ByteString, by lease: Lease
  ) throws(StoreError) -> ObjectPath? {
    let aside = lease.path.appending(name)
    do {
      try lease.explained { () throws(StoreError) in try storage.rename(object, to: aside) }
    } catch {
      guard error.code == .missing else { throw error }
      return nil
    }
    return aside
  }

  /// A user who may rename but not remove has removed the object, too: its remains are removed with
  /// the lease by another program.
  func remove(_ object: ObjectPath, by lease: Lease) throws(StoreError) {
    let name = Self.removedName(object)
    guard let path = try moveAway(object, as: name, by: lease) else { return }
    do throws(StoreError) {
      try lease.explained { () throws(StoreError) in try storage.remove(path) }
    } catch { if !error.isRefused { throw error } }
  }

  /// A pack that reappears after a power failure is still condemned, or no index object names it:
  /// no writer relies on it, and a later prune removes it.
  func remove(packs: [ObjectPath], by lease: Lease) throws(StoreError) {
    let path = lease.path
    let moves = packs.map { ObjectMove($0, to: path.appending(Self.removedName($0))) }
    guard try !storage.moveAside(moves) else { return try storage.remove(moves.map(\.target)) }
    // Some of them or the lease no longer exist.
    try lease.explained { () throws(StoreError) in
      guard try storage.status(path) != nil else { throw .missing("\(path)") }
      try storage.remove(moves.map(\.target))
    }
  }

  private static func removedName(_ object: ObjectPath) -> ByteString {
    ByteString("removed-\(object.name)")
  }

  func move(_ object: ObjectPath, to target: ObjectPath, by lease: Lease) throws(StoreError) {
    try storage.rename(object, to: target)
  }

  /// Removes the signs and the directory. If that has other content, such as unfinished objects, it
  /// is listed.
  func release(
    _ lease: ObjectPath, signs: [ByteString]?, isSettled: Bool, with leftovers: [ObjectPath]
  ) {
    if let signs, (try? storage.remove(signs.map { lease.appending($0) } + [lease])) != nil {
      return
    }
    Self.remove(lease, storage)
  }

  func statuses() throws(StoreError) -> [LeaseStatus] {
    let names = try storage.listIfPresent(RepositoryLayout.leases) ?? []
    let owners = try owners(in: PruneLease.path)
    var leases: [LeaseStatus] = []
    for name in names where name != PruneLease.path.name {
      if let status = try status(of: name, owners) { leases.append(status) }
    }
    return leases
  }

  /// Returns a lease, or nil if it does not exist.
  ///
  /// - Parameter owners: the files that name the owner of the right to remove objects.
  func status(
    of name: ByteString, _ owners: [ByteString]
  ) throws(StoreError) -> LeaseStatus? {
    let path = RepositoryLayout.leases.appending(name)
    guard let signs = try signs(of: path) else { return nil }
    let named = signs.first { LeaseStatus.Owner($0) != nil }
    var began: Timestamp?
    if let named { began = try storage.status(path.appending(named))?.modified }
    return LeaseStatus(
      name: name, signs: signs,
      heartbeat: try storage.status(path.appending(Lease.alive))?.modified, began: began,
      removesObjects: owners.contains(PruneLease.owner(of: name)))
  }

  /// Returns the names in a lease, or nil if it does not exist.
  func signs(of lease: ObjectPath) throws(StoreError) -> [ByteString]? {
    do {
      return try storage.list(lease)
    } catch {
      guard error.code == .missing else { throw error }
      return nil
    }
  }

  /// None: a program that lost its lease can remove nothing.
  func sleepingRemovers() -> [ByteString] { [] }

  func removeExpired(besides lease: Lease) throws(StoreError) {
    guard let now = try lease.now() else { return }
    for other in try statuses() where other.name != lease.path.name {
      let path = RepositoryLayout.leases.appending(other.name)
      if try isExpired(path, at: now) { _ = try takeAway(path) }
    }
  }

  /// Takes a lease away. It is renamed first: its program can then commit and remove nothing more,
  /// even if it continues at this moment. Returns false if it is already gone.
  func takeAway(_ lease: ObjectPath) throws(StoreError) -> Bool {
    guard let aside = try moveAside(lease) else { return false }
    Self.remove(aside, storage)
    return true
  }

  /// Gives a directory of leases a new name. Returns its path, or nil if it is already gone.
  func moveAside(_ directory: ObjectPath) throws(StoreError) -> ObjectPath? {
    let aside = Lease.newPath()
    do {
      try storage.rename(directory, to: aside)
    } catch {
      guard error.code == .missing else { throw error }
      return nil
    }
    return aside
  }

  /// Whether a directory had no heartbeat for an hour before a time of the storage's clock. If
  /// there is no heartbeat, because the program ended before its first one, or if it is more than
  /// an hour later, because the clock was set back, the hour starts now.
  func isExpired(_ directory: ObjectPath, at now: Timestamp) throws(StoreError) -> Bool {
    let alive = directory.appending(Lease.alive)
    guard let last = try storage.status(alive)?.modified, last.since(now) <= Lease.patience else {
      try? storage.touch(alive)
      return false
    }
    return now.since(last) > Lease.patience
  }

  /// Removes the directory of a lease, or that of the right to remove objects, as far as possible.
  ///
  /// A program that looks for dead leases creates `alive` in a directory without one
  /// (`isExpired`), so the directory may not be empty when it is removed. Then only `alive` is
  /// removed again, because any other file belongs to another program.
  ///
  /// - Returns: whether it was removed.
  @discardableResult
  static func remove(_ directory: ObjectPath, _ storage: RepositoryStorage) -> Bool {
    for name in (try? storage.list(directory)) ?? [] {
      try? storage.remove(directory.appending(name))
    }
    for _ in 1...attempts {
      if (try? storage.remove(directory)) != nil { return true }
      if (try? storage.remove(directory.appending(Lease.alive))) == nil { return false }
    }
    return false
  }

  /// The number of attempts: more than the programs that look at the same time, but bounded if the
  /// storage is faulty.
  private static let attempts = 16

  /// Checks that the directory `pending`, which only stores without rename use, has no snapshot.
  func pendingSnapshots(for action: String) throws(StoreError) -> [Digest: ObjectPath] {
    let names = try storage.listIfPresent(RepositoryLayout.pending) ?? []
    guard names.isEmpty else {
      throw StoreError(
        .unsupported, action, subject: storage.location,
        reason: "it has snapshots in the directory 'pending', which this version does not know",
        hint: "use a newer sandboxctl")
    }
    return [:]
  }
}
