package import DeviceScan
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The units that a purge deletes, their order and the reasons: a value derived from a scan and a
/// request only.
///
/// Candidates are units (docs/purge.md). Each volume is judged separately: by its own free space,
/// with the candidates on it.
package struct PurgePlan: Sendable {
  package let scan: DeviceScan
  package let request: PurgeRequest
  /// All candidates, in the order in which they are deleted.
  package let units: [PurgeUnit]
  /// The volumes of the device's containers, in the order of the first container on each.
  package internal(set) var volumes: [PurgeVolume]
  /// The companions of each database that is a candidate, by container and entry.
  let companions: [[Int32: [Int32]]]
  /// The reasons why entries are no candidates, by container and entry.
  let conflicts: [[Int32: PurgeConflict]]

  /// Creates the plan.
  package static func make(_ scan: DeviceScan, _ request: PurgeRequest) -> PurgePlan {
    var (units, companions, conflicts): ([PurgeUnit], [[Int32: [Int32]]], [[Int32: PurgeConflict]])
    (units, companions, conflicts) = ([], [], [])
    let quotas = scan.policy.quotas.isEmpty ? nil : PurgeQuotas(scan.containers, scan.policy)
    var ranks = PathRanks()
    for (place, container) in scan.containers.enumerated() {
      var finder = PurgeFinder(container, at: place, policy: scan.policy, request: request)
      finder.run()
      var found = finder.takeUnits()
      ranks.rank(&found, in: container)
      quotas?.mark(&found, in: container)
      units += found
      companions.append(finder.companions)
      conflicts.append(finder.conflicts)
    }
    PurgeOrder.sort(&units, at: request.now)
    var plan = PurgePlan(
      scan: scan, request: request, units: units, volumes: [], companions: companions,
      conflicts: conflicts)
    plan.volumes = plan.judgeVolumes()
    return plan
  }

  /// Returns the party of a container. A party is running or not as a whole: an app with its
  /// extensions, or a container without an app.
  package static func party(of container: Container) -> ByteString {
    container.owner?.bytes ?? container.logicalPrefix
  }

  /// Returns the party of a unit.
  package func party(of unit: PurgeUnit) -> ByteString {
    Self.party(of: scan.containers[Int(unit.container)].container)
  }

  /// Returns the logical path of a unit.
  package func path(of unit: PurgeUnit) -> ByteString {
    scan.containers[Int(unit.container)].logicalPath(Int(unit.entry))
  }

  /// Returns the policy's decision that allows a unit to be deleted.
  package func decision(on unit: PurgeUnit) -> CompiledPolicy.PurgeDecision {
    let container = scan.containers[Int(unit.container)]
    return scan.policy.purgeDecision(
      on: container.query(Int(unit.entry)), scanStart: request.now.seconds)
  }

  /// Returns, for each container, whether it was requested and its app is not running.
  func freeContainers() -> [Bool] {
    scan.containers.map {
      request.running[Self.party(of: $0.container)] == nil && isWanted($0.container)
    }
  }

  func isWanted(_ container: Container) -> Bool {
    request.only?.contains(container.logicalPrefix) ?? true
  }

  /// Returns the device number of the volume of a unit.
  func device(of unit: PurgeUnit) -> UInt64 {
    scan.containers[Int(unit.container)].entries[Int(unit.entry)].status.identity.device
  }

  /// Returns the entries of a unit: a directory before its content, a database first.
  func members(of unit: PurgeUnit) -> [Int] {
    let entry = Int(unit.entry)
    switch unit.kind {
    case .file: return [entry]
    case .database:
      return [entry] + (companions[Int(unit.container)][unit.entry] ?? []).map(Int.init)
    case .folder:
      let scan = scan.containers[Int(unit.container)]
      var (members, next) = ([entry], 0)
      while next < members.count {
        if scan.entries[members[next]].status.kind == .directory {
          members += Array(scan.entries[members[next]].children)
        }
        next += 1
      }
      return members
    }
  }
}
