internal import DeviceScan
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The reason why a purge would delete an entry or not.
package struct PurgeJudgement: Sendable {
  /// The unit that the entry belongs to; nil if it is no candidate.
  package internal(set) var unit: PurgeUnit?
  /// The unit's logical path.
  package internal(set) var unitPath: ByteString?
  /// The unit's position among all candidates, from 1.
  package internal(set) var place: Int?
  /// The levels at which the unit is deleted.
  package internal(set) var levels: [Pressure.Level] = []
  /// The reason why the entry is no candidate.
  package internal(set) var conflict: PurgeConflict?
  /// The reason to consider its app running.
  package internal(set) var running: String?
  /// The policy's decision.
  package internal(set) var decision: CompiledPolicy.PurgeDecision?
}

extension PurgePlan {
  /// Returns whether the entry at a path of a container is a candidate, and why.
  package func judge(_ container: Container, _ inner: ByteString) -> PurgeJudgement {
    var judgement = PurgeJudgement()
    judgement.running = request.running[Self.party(of: container)]
    guard let number = scan.containers.firstIndex(where: { $0.container == container }),
      let entry = scan.containers[number].index(of: inner)
    else {
      judgement.conflict = .missing
      return judgement
    }
    let found = scan.containers[number]
    judgement.decision = scan.policy.purgeDecision(
      on: found.query(entry), scanStart: request.now.seconds)
    if let place = unitPlace(number, entry) {
      let unit = units[place]
      (judgement.unit, judgement.unitPath, judgement.place) = (unit, path(of: unit), place + 1)
      judgement.levels = scan.policy.pressure.filter {
        PurgeTerm($0).allows(unit, at: request.now)
      }.map(\.level)
    } else {
      judgement.conflict = conflict(number, entry)
    }
    return judgement
  }

  /// Returns the index of the unit that an entry belongs to, or nil if there is none.
  private func unitPlace(_ container: Int, _ entry: Int) -> Int? {
    let scan = scan.containers[container]
    var wanted: Set<Int32> = [Int32(entry)]
    if let owner = companions[container].first(where: { $0.value.contains(Int32(entry)) }) {
      wanted.insert(owner.key)
    }
    var directories: Set<Int32> = []
    var at = entry
    while at != 0 {
      at = Int(scan.entries[at].parent)
      directories.insert(Int32(at))
    }
    return units.firstIndex { unit in
      unit.container == Int32(container)
        && (wanted.contains(unit.entry) || unit.kind == .folder && directories.contains(unit.entry))
    }
  }

  private func conflict(_ container: Int, _ entry: Int) -> PurgeConflict {
    let scan = scan.containers[container]
    if let known = conflicts[container][Int32(entry)] { return known }
    if scan.entries[entry].verdicts.keep.purge == .never { return .never }
    var at = entry
    while at != 0 {
      at = Int(scan.entries[at].parent)
      if let known = conflicts[container][Int32(at)] { return known }
    }
    return scan.entries[entry].status.kind == .directory ? .folder : .never
  }
}
