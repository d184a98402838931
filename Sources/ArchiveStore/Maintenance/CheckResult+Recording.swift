internal import Codecs
internal import SystemIO

extension CheckResult {
  /// Records the damaged packs in the repository, so that no writer relies on them, and removes
  /// packs that are intact or gone from the records. Records that are up to date stay unchanged.
  ///
  /// - Throws: `StoreError` if the repository cannot be written to.
  package func recordDamage() throws(StoreError) {
    let repository = run.check.repository
    let storage = repository.storage
    guard let packs = change(of: try DamageRecords(storage)) else { return }
    try repository.settings.requireKnown(
      repository.settings.features.write, for: "write", place: repository.place)
    if !packs.isEmpty {
      try storage.makeMissing([RepositoryLayout.damaged.name], in: .root)
    }
    let lease = try Lease(storage)
    defer { lease.release() }
    let records = try DamageRecords(storage)
    guard let packs = change(of: records) else { return }
    try records.replace(by: packs, lease)
  }

  /// Returns the packs to record, or nil if the records are up to date.
  private func change(of records: DamageRecords) -> [DamageRecord.Pack]? {
    var packs = records.packs.filter { pack, _ in
      run.inventory.packs[pack] != nil && !run.soundPacks.contains(pack)
    }
    packs.merge(run.damagedPacks) { _, found in found }
    let isSame = packs == records.packs && records.faults.allSatisfy { $0.error.code != .damaged }
    return isSame ? nil : Array(packs.values)
  }
}

extension DamageRecords {
  /// Saves one record of all damaged packs, then removes the records that it replaces.
  func replace(by packs: [DamageRecord.Pack], _ lease: Lease) throws(StoreError) {
    var current: ByteString?
    if !packs.isEmpty {
      let bytes = DamageRecord(packs).encode()
      let name = ByteString(Blake2b.hash(bytes).hex + ".json")
      try lease.save(bytes, as: RepositoryLayout.damaged.appending(name))
      current = name
    }
    for name in names where name != current {
      do throws(StoreError) {
        try lease.storage.remove(RepositoryLayout.damaged.appending(name))
      } catch {
        guard error.code == .missing else { throw error }
      }
    }
  }
}
