internal import Codecs
internal import SystemIO

/// Leases in a store with rename: directories (docs/repository-format.md, "Leases").
struct DirectoryLeases: LeaseForm {
  private let storage: RepositoryStorage

  init(_ storage: RepositoryStorage) { self.storage = storage }

  var removalBatch: Int { 64 }

  func mayTakeReaderLease() -> Bool {
    guard case .some(.some) = try? storage.status(RepositoryLayout.leases) else { return false }
    return true
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

  /// A user who may rename and not remove has removed the object, too: what is left of it goes with
  /// the lease, once another program removes that.
  func remove(_ object: ObjectPath, by lease: Lease) throws(StoreError) {
    let name = Self.removedName(object)
    guard let path = try moveAway(object, as: name, by: lease) else { return }
    do throws(StoreError) {
      try lease.explained { () throws(StoreError) in try storage.remove(path) }
    } catch { if !error.isRefused { throw error } }
  }

  /// A pack that is back after a power failure is still condemned, or no index object names it: no
  /// writer relies on it, and a later prune removes it.
  func remove(packs: [ObjectPath], by lease: Lease) throws(StoreError) {
    let path = lease.path
    let moves = packs.map { ObjectMove($0, to: path.appending(Self.removedName($0))) }
    guard try !storage.moveAside(moves) else { return try storage.remove(moves.map(\.target)) }
    // Some are already gone, or the lease is.
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
  private func status(
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
  private func signs(of lease: ObjectPath) throws(StoreError) -> [ByteString]? {
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
  private func takeAway(_ lease: ObjectPath) throws(StoreError) -> Bool {
    guard let aside = try moveAside(lease) else { return false }
    Self.remove(aside, storage)
    return true
  }

  /// Gives a directory of leases a new name. Returns its path, or nil if it is already gone.
  private func moveAside(_ directory: ObjectPath) throws(StoreError) -> ObjectPath? {
    let aside = RepositoryLayout.leases.appending(ByteString(Host.randomHex(bytes: 16)))
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
  private func isExpired(_ directory: ObjectPath, at now: Timestamp) throws(StoreError) -> Bool {
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
  private static func remove(_ directory: ObjectPath, _ storage: RepositoryStorage) -> Bool {
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

// MARK: - The right to remove objects

extension DirectoryLeases {
  private static let alive = PruneLease.path.appending(Lease.alive)

  /// The empty file that names the owner of the directory.
  private func owner(_ lease: Lease) -> ObjectPath {
    PruneLease.path.appending(PruneLease.owner(of: lease.path.name))
  }

  /// Creates the directory `leases/prune`: success grants the right.
  func takeRight(_ lease: Lease) throws(StoreError) -> Bool {
    if try !makeRight() {
      guard try removeStaleRight(for: lease), try makeRight() else { return false }
    }
    do throws(StoreError) {
      try storage.touch(Self.alive)
      try storage.touch(owner(lease))
      return try isAlone(lease)
    } catch {
      // Another program took the directory away, after this one slept for an hour.
      if error.code == .missing { return false }
      Self.remove(PruneLease.path, storage)
      throw error
    }
  }

  /// Whether no other program has created the directory again and put its file into it, after this
  /// one slept for an hour. If so, this one's file is removed.
  private func isAlone(_ lease: Lease) throws(StoreError) -> Bool {
    let owner = owner(lease)
    let owners = try storage.list(PruneLease.path).filter { $0.bytes.starts(with: "of-".utf8) }
    if owners == [owner.name] { return true }
    try? storage.remove(owner)
    return false
  }

  private func makeRight() throws(StoreError) -> Bool {
    do {
      try storage.makeDirectories([PruneLease.path.name], in: RepositoryLayout.leases)
      return true
    } catch {
      guard error.code == .notEmpty else { throw error }
      return false
    }
  }

  /// Removes the directory of a holder that is dead, or seems to be. Returns false if it may be
  /// alive, or if another program was faster.
  private func removeStaleRight(for lease: Lease) throws(StoreError) -> Bool {
    if try removeRightOfEnded() { return true }
    guard let now = try lease.now(), try isExpired(PruneLease.path, at: now) else { return false }
    return try removeRight { aside throws(StoreError) in try isExpired(aside, at: now) }
  }

  /// Removes the directory of a holder whose process has ended on this host, or whose lease is
  /// gone. The lease is taken away before it: if a request of the holder is still on its way to the
  /// store, or if the process runs on in a clone of a virtual machine, it can commit and remove
  /// nothing more.
  private func removeRightOfEnded() throws(StoreError) -> Bool {
    let owners = try owners(in: PruneLease.path)
    guard owners.count == 1, let name = PruneLease.lease(of: owners[0]) else { return false }
    // Not from a listing of all leases: a client of a network file system may have one from before
    // the lease was taken.
    if let holder = try status(of: name, owners) {
      guard holder.presence == .ended else { return false }
      do throws(StoreError) {
        _ = try takeAway(RepositoryLayout.leases.appending(name))
      } catch {
        // It belongs to another user.
        guard error.cause?.isRefused == true else { throw error }
        return false
      }
    }
    // The holder may have released both between the two listings.
    guard try self.owners(in: PruneLease.path) == owners else { return false }
    return try removeRight { aside throws(StoreError) in try self.owners(in: aside) == owners }
  }

  /// Removes the directory of the right. It is renamed first, so that only one of two programs
  /// takes it, and checked again, because another program may have taken the right in between.
  private func removeRight(
    if isStale: (ObjectPath) throws(StoreError) -> Bool
  ) throws(StoreError) -> Bool {
    guard let aside = try moveAside(PruneLease.path) else { return false }
    let wasStale = try isStale(aside)
    Self.remove(aside, storage)
    return wasStale
  }

  /// Returns the files in the directory of the right that name its owner.
  private func owners(in right: ObjectPath) throws(StoreError) -> [ByteString] {
    (try signs(of: right) ?? []).filter { $0.bytes.starts(with: "of-".utf8) }
  }

  func holdsRight(_ lease: Lease) throws(StoreError) -> Bool {
    guard try storage.status(owner(lease)) != nil else { return false }
    do {
      try storage.touch(Self.alive)
      return true
    } catch {
      // Another program took the directory away at this moment.
      guard error.code == .missing else { throw error }
      return false
    }
  }

  /// A user who may not remove the directory renames it to a lease, which ends by its age. If that
  /// fails as well, another program takes the right over an hour later.
  func releaseRight(_ lease: Lease) {
    guard isOwn(lease), !Self.remove(PruneLease.path, storage), isOwn(lease) else { return }
    let aside = RepositoryLayout.leases.appending(ByteString(Host.randomHex(bytes: 16)))
    try? storage.rename(PruneLease.path, to: aside)
  }

  private func isOwn(_ lease: Lease) -> Bool {
    guard case .some(.some) = try? storage.status(owner(lease)) else { return false }
    return true
  }
}
