internal import SystemIO

/// Determines whether a mirror is the repository itself, reached by another path, or within it.
///
/// A directory on this host is identified by its device and inode, whatever its name. On another
/// host a run determines it by its lease, before it copies anything; a dry run, which writes
/// nothing, can only rule it out.
extension RepositoryMirror {
  /// A location that no mirror may have.
  public enum Place: String, Sendable {
    case repository = "the repository itself"
    case inRepository = "within the repository itself"
  }

  /// Checks that source and target are not the same directory on this host.
  func requireAnotherDirectory() throws(StoreError) {
    guard let to = target, let identity = try to.directoryIdentity() else { return }
    guard try source.storage.directoryIdentity() != identity else {
      throw refusal(asIs: .repository, to)
    }
  }

  private func refusal(asIs place: Place, _ target: RepositoryStorage) -> StoreError {
    StoreError(
      .invalid, "mirror the repository to", subject: target.location,
      reason: "it is \(place.rawValue)", hint: "name another directory with '--to'")
  }

  /// Checks that the original does not see a lease of the mirror. Otherwise they are the same
  /// location, reached by another path or another name of its host, or the mirror is within the
  /// original.
  func requireDifferent(
    _ target: RepositoryStorage, seenBy lease: Lease, isNew: Bool
  ) throws(StoreError) {
    func isSeen(below place: ObjectPath) -> Bool {
      let names = lease.path.components + [LeaseStatus.Owner.sign]
      // A user with only read access may be refused even what does not exist.
      return (try? source.storage.status(names.reduce(place) { $0.appending($1) })) != nil
    }
    // A location without the id of the original is a different one.
    if !isNew, isSeen(below: .root) { throw refusal(asIs: .repository, target) }
    if let place, isSeen(below: place) {
      throw refusal(asIs: .inRepository, target)
    }
  }

  /// Returns the location that a target on another host may be, as far as that is known without a
  /// lease; nil if it is a different one, and for directories on this host, which are compared.
  ///
  /// A mirror has its own record and its own `repository.json`, written later than that of the
  /// original. So only a copy made by other means that keep times seems to be the repository.
  func possiblePlace(isNew: Bool, record: MirrorRecord?) throws(StoreError) -> Place? {
    guard let target, !isNew else { return place == nil ? nil : .inRepository }
    if try target.directoryIdentity() != nil, try source.storage.directoryIdentity() != nil {
      return nil
    }
    // A user who may read only some objects may be refused even what does not exist.
    let own = try? MirrorRecord.load(source.storage)
    if let record, record != own { return nil }
    let path = RepositoryLayout.settings
    guard let one = try source.storage.status(path), let other = try target.status(path),
      one.size == other.size, one.modified.seconds == other.modified.seconds
    else { return nil }
    return .repository
  }
}
