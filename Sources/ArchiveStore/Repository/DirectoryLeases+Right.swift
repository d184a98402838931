internal import Codecs
internal import SystemIO

// The right to remove objects (docs/repository-format.md, "Removing objects").
extension DirectoryLeases {
  private static let alive = PruneLease.path.appending(Lease.alive)

  /// The empty file that names the owner of the directory.
  private func owner(_ lease: Lease) -> ObjectPath {
    PruneLease.path.appending(PruneLease.owner(of: lease.path.name))
  }

  /// The names in the directory of the holder of a lease. Under its private name it is a lease to
  /// other programs, which need to know when its program began.
  private func names(_ lease: Lease) -> [ByteString] {
    [Lease.alive, LeaseStatus.Owner.sign, owner(lease).name]
  }

  /// Makes a directory with the file that names its owner, and renames it to `leases/prune`:
  /// success grants the right. So a program that is killed leaves no right without an owner.
  func takeRight(_ lease: Lease) throws(StoreError) -> Bool {
    if try storage.status(PruneLease.path) != nil, try !removeStaleRight(for: lease) {
      return false
    }
    let made = Lease.newPath()
    try storage.makeDirectories([made.name], in: RepositoryLayout.leases)
    do throws(StoreError) {
      try storage.touch(names(lease).map { made.appending($0) })
      if try place(made, for: lease) { return try isAlone(lease) }
    } catch {
      Self.remove(made, storage)
      releaseRight(lease)
      // Another program took the directory away after this one was suspended for an hour.
      if error.code == .missing { return false }
      throw error
    }
    Self.remove(made, storage)
    return false
  }

  /// Renames a directory to `leases/prune`. Returns false if another program has the right: a
  /// directory that is not empty is not replaced.
  private func place(_ made: ObjectPath, for lease: Lease) throws(StoreError) -> Bool {
    for isLast in [false, true] {
      do throws(StoreError) {
        // If it is gone, the answer to a first attempt was lost, or another program took it away.
        return try storage.moveAside([ObjectMove(made, to: PruneLease.path)]) || isOwn(lease)
      } catch {
        if isOwn(lease) { return true }
        if try storage.status(PruneLease.path) != nil { return false }
        // Another program has released it since, or the store refuses the rename.
        if isLast { throw error }
      }
    }
    return false
  }

  /// Whether no other program has put its file into the directory: a program of an earlier version
  /// that had created the directory, or one in a store that merges directories. Otherwise this
  /// program's file is removed, and the directory if no program is left.
  private func isAlone(_ lease: Lease) throws(StoreError) -> Bool {
    let owner = owner(lease)
    let owners = try owners(in: PruneLease.path)
    if owners == [owner.name] { return true }
    guard owners.contains(owner.name) else { return false }
    try? storage.remove(owner)
    if try self.owners(in: PruneLease.path).isEmpty {
      _ = try removeRight { _ throws(StoreError) in true }
    }
    return false
  }

  /// Removes the directory of a holder that is or seems dead. Returns false if the holder may be
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
    // Not from a listing of all leases: a client of a network file system may have a cached one
    // from before the lease was taken.
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
  func owners(in right: ObjectPath) throws(StoreError) -> [ByteString] {
    (try signs(of: right) ?? []).filter { $0.bytes.starts(with: PruneLease.ownerPrefix.utf8) }
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

  /// Renames the directory before its content is removed, so that a killed program leaves no right
  /// without an owner. Whatever then remains, or this user may not remove, expires as a lease does.
  /// If the directory may not be renamed, it is removed where it is.
  func releaseRight(_ lease: Lease) {
    guard isOwn(lease) else { return }
    let aside = Lease.newPath()
    let isMoved = (try? storage.moveAside([ObjectMove(PruneLease.path, to: aside)])) != nil
    if !isMoved, isOwn(lease) {
      Self.remove(PruneLease.path, storage)
    } else if (try? storage.remove(names(lease).map { aside.appending($0) } + [aside])) == nil {
      Self.remove(aside, storage)
    }
  }

  private func isOwn(_ lease: Lease) -> Bool {
    (try? storage.status(owner(lease))) != nil
  }
}
