internal import Codecs
internal import SystemIO

extension [Digest: CondemnedObject] {
  /// Returns the condemned objects that every program with one of the leases has seen, and for each
  /// of the others the leases that it waits for.
  func due(
    for leases: [LeaseStatus]
  ) -> (due: [Digest: CondemnedObject], waiting: [Digest: [ByteString]]) {
    var due: [Digest: CondemnedObject] = [:]
    var waiting: [Digest: [ByteString]] = [:]
    for (id, object) in self {
      let unaware = leases.filter { !$0.seen.contains(id) }.map(\.name)
      if unaware.isEmpty { due[id] = object } else { waiting[id] = unaware }
    }
    return (due, waiting)
  }
}

extension RepositoryPrune.Report {
  /// Adds what a prune does first: it removes the condemned packs that no program relies on and no
  /// snapshot needs. Those that it keeps are in the plan that is made afterwards.
  mutating func addCondemned(in needs: inout SnapshotNeeds) {
    let (due, waiting) = needs.condemnedObjects.due(for: needs.leases)
    var swept = PruneSweep.Result()
    let packs = Set(due.values.flatMap(\.packs))
    swept.kept = needs.selectNeeded(among: packs)
    for pack in packs.subtracting(swept.kept) {
      // A pack that is gone was removed by a prune that was interrupted.
      if let size = needs.packSizes[pack] { swept.removed[pack] = size }
    }
    (removedPacks, removedBytes) = (swept.removed.count, swept.removed.values.clampedSum)
    waitingPacks = Set(waiting.keys.flatMap { needs.condemnedObjects[$0]?.packs ?? [] }).count
    waitingFor = Set(waiting.values.joined()).sorted()
    needs.add(swept)
  }
}
