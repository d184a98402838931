internal import Codecs
internal import SystemIO

extension RepositoryCheck.Run {
  /// Returns remarks: facts that a user should know and that cost no snapshot any data.
  func remarks() throws(StoreError) -> [(object: String, reason: String)] {
    var remarks: [(object: String, reason: String)] = []
    let unused = inventory.packs.filter { !index.names($0.key) }
    // An index object that this user may not read may name them.
    let mayBeNamed = refused.keys.contains { $0.directory == RepositoryLayout.indexes }
    if !unused.isEmpty, !index.isRescueNeeded, !mayBeNamed {
      let bytes = unused.values.clampedSum
      remarks.append(
        (
          "packs",
          "\(StoreError.packs(unused.count)) of \(bytes) bytes \(unused.count == 1 ? "is" : "are") in no "
            + "index, for example after an interrupted backup"
        ))
    }
    if !condemnedPacks.isEmpty {
      let verb = condemnedPacks.count == 1 ? "is" : "are"
      let packs = StoreError.packs(condemnedPacks.count)
      remarks.append(("condemned", "\(packs) \(verb) about to be removed"))
    }
    remarks += missingDirectories()
    remarks += try leases()
    if check.repository.trust.isEmpty { remarks += wrongSignatures() }
    for pin in inventory.pins where RepositoryLayout.id(pin, suffix: "") == nil {
      remarks.append(("pins/\(pin)", "it is not the id of a snapshot"))
    }
    for stranger in inventory.unknownFiles {
      remarks.append(("\(stranger)", "it does not belong there and was not checked"))
    }
    return remarks + (try missingFiles())
  }

  /// Returns remarks about signatures that are not valid, while every snapshot is accepted.
  private func wrongSignatures() -> [(object: String, reason: String)] {
    snapshots.compactMap { stored -> (object: String, reason: String)? in
      let reason: String
      switch stored.signature {
      case .absent, .valid: return nil
      case .wrong: reason = TrustedSigners.Refusal.wrong.reason
      case .malformed: reason = TrustedSigners.Refusal.malformed.reason
      }
      return ("\(storage.layout.snapshot(stored.id))", reason)
    }
  }

  /// Returns remarks about missing directories that nothing needs; those of packs, of which there
  /// may be many, share one remark.
  private func missingDirectories() -> [(object: String, reason: String)] {
    let reason = "for example because a copy omitted empty directories; no snapshot needs it"
    var remarks = emptyDirectories.filter { $0.directory == .root }.map { directory in
      (object: "\(directory)", reason: "the directory is missing, \(reason)")
    }
    let packs = emptyDirectories.count - remarks.count
    if packs > 0 {
      let all = RepositoryLayout.packDirectories.count
      remarks.append(("packs", "\(packs) of the \(all) directories in it are missing, \(reason)"))
    }
    return remarks
  }

  /// Returns remarks about missing files that are useful but not required.
  private func missingFiles() throws(StoreError) -> [(object: String, reason: String)] {
    var remarks: [(object: String, reason: String)] = []
    if try storage.status(RepositoryLayout.readme) == nil {
      remarks.append(("README.txt", "the instructions for recovery by hand are missing"))
    }
    let reserve = try storage.status(RepositoryLayout.reserve)
    if reserve?.size != UInt64(RepositoryLayout.reserveSize) {
      remarks.append(("reserve", "the space reserved for a full disk is missing"))
    }
    return remarks
  }

  /// Returns remarks about leases, except those whose programs have ended since they were listed.
  private func leases() throws(StoreError) -> [(object: String, reason: String)] {
    if inventory.leases.isEmpty { return [] }
    let statuses = try LeaseStatus.all(storage)
    var remarks: [(object: String, reason: String)] = []
    for name in inventory.leases {
      let path = RepositoryLayout.leases.appending(name)
      guard let signs = try storage.listIfPresent(path), storage.canRename || !signs.isEmpty else {
        continue
      }
      let alive = try storage.status(path.appending(Lease.alive))?.modified
      // The program has ended since the lease was listed.
      if alive == nil, signs.contains(Lease.alive) { continue }
      let status = statuses.first {
        path == PruneLease.path ? $0.removesObjects : $0.name == name
      }
      // A store of objects needs no separate object for a heartbeat.
      let heartbeat = alive ?? (storage.canRename ? nil : status?.heartbeat)
      let hasEnded = signs.contains(ObjectLeases.dead) || status?.presence == .ended
      remarks.append(("\(path)", Self.reason(heartbeat, signs, hasEnded: hasEnded)))
    }
    return remarks
  }

  /// Returns a description of a lease with these signs and unfinished objects.
  private static func reason(
    _ heartbeat: Timestamp?, _ names: [ByteString], hasEnded: Bool
  ) -> String {
    let unfinished = names.count { !Lease.isSign($0) }
    let what = unfinished == 1 ? "1 unfinished object" : "\(unfinished) unfinished objects"
    if hasEnded { return "a program that has ended left \(what); a later prune removes the lease" }
    guard let heartbeat else { return "it has no heartbeat: a program ended without removing it" }
    let hours = Int(Host.now().since(heartbeat) / 3600)
    return hours >= 1
      ? "a program without a heartbeat for \(hours) h left \(what)"
      : "a program is running, with \(what)"
  }
}
