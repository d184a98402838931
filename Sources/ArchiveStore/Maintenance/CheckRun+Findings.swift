internal import Codecs
internal import SystemIO

extension CheckRun {
  /// Passes the findings to `tell`: damage, affected paths, remarks.
  func forEachFinding(_ tell: (CheckFinding) throws -> Void) throws {
    for finding in damage { try tell(finding) }
    if !isWhole { try reportCosts(tell) }
    for (object, reason) in try remarks() { try tell(.remark(object: object, reason: reason)) }
  }

  /// Walks all snapshots together and reports each path that cannot be restored.
  private func reportCosts(_ tell: (CheckFinding) throws -> Void) throws {
    let reader = try check.repository.beginReading(by: index)
    let roots = snapshots.map(\.snapshot.tree)
    try reader.walkTogether(roots) { path, found in
      try check.checkNotStopped()
      switch found {
      case .damage(let error, let trees):
        try tell(cost(at: path, reason: "\(error.subject): \(error.reason)", trees: trees))
      case .entries(let entries, _):
        for found in entries {
          if let fault = try TreeCheck.fault(of: found.entry, reader, index) {
            try tell(cost(at: path, reason: fault, trees: found.trees))
          }
        }
      }
      return .enter
    }
  }

  private func cost(at path: ByteString, reason: String, trees: [Int]) -> CheckFinding {
    .cost(path: path, snapshots: trees.map { snapshots[$0].id }, reason: reason)
  }

  private func remarks() throws(StoreError) -> [(object: String, reason: String)] {
    var remarks: [(object: String, reason: String)] = []
    let unused = inventory.packs.filter { !index.names($0.key) }
    if !unused.isEmpty, !index.isRescueNeeded {
      let bytes = unused.values.clampedSum
      remarks.append(
        (
          "packs",
          "\(unused.count) packs of \(bytes) bytes are in no index, for example after an "
            + "interrupted backup"
        ))
    }
    if condemnedPacks > 0 {
      remarks.append(("condemned", "\(condemnedPacks) packs are about to be removed"))
    }
    remarks += missingDirectories()
    for name in inventory.leases { remarks += try lease(name) }
    let ids = Set(inventory.snapshots.map { ByteString($0.hex) })
    for pin in inventory.pins where !ids.contains(pin) {
      remarks.append(("pins/\(pin)", "the snapshot does not exist"))
    }
    for stranger in inventory.unknownFiles {
      remarks.append(("\(stranger)", "it does not belong there and was not checked"))
    }
    return remarks + (try missingFiles())
  }

  /// Returns remarks about missing directories that nothing needs; those of packs, which may be
  /// many, share one remark.
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

  private func lease(
    _ name: ByteString
  ) throws(StoreError) -> [(object: String, reason: String)] {
    let path = RepositoryLayout.leases.appending(name)
    guard let alive = try storage.status(path.appending("alive")) else {
      return [("\(path)", "it has no heartbeat file: a program ended without removing it")]
    }
    let unfinished = ((try? storage.list(path)) ?? []).count { name in
      !Lease.isSign(name)
    }
    let hours = Int(Host.now().since(alive.modified) / 3600)
    let what = unfinished == 1 ? "1 unfinished object" : "\(unfinished) unfinished objects"
    return hours >= 1
      ? [("\(path)", "a program without a heartbeat for \(hours) h left \(what)")]
      : [("\(path)", "a program is running, with \(what)")]
  }
}
