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
  /// The reasons why entries are not candidates, by container and entry.
  let conflicts: [[Int32: Conflict]]
  /// The immutable and append-only entries that prevent a deletion, by container.
  let fixed: [[Int32]]

  /// Creates the plan.
  package static func make(_ scan: DeviceScan, _ request: PurgeRequest) -> PurgePlan {
    var (units, companions, conflicts): ([PurgeUnit], [[Int32: [Int32]]], [[Int32: Conflict]])
    (units, companions, conflicts) = ([], [], [])
    var fixed: [[Int32]] = []
    let quotas = scan.policy.quotas.isEmpty ? nil : PurgeQuotas(scan.containers, scan.policy)
    var ranks = PurgeOrder.PathRanks()
    for (number, container) in scan.containers.enumerated() {
      var finder = PurgeFinder(container, at: number, policy: scan.policy, request: request)
      finder.run()
      var found = finder.removeUnits()
      ranks.rank(&found, in: container)
      quotas?.mark(&found, in: container)
      units += found
      companions.append(finder.companions)
      conflicts.append(finder.conflicts)
      fixed.append(finder.fixed.sorted())
    }
    PurgeOrder.sort(&units, at: request.now)
    var plan = PurgePlan(
      scan: scan, request: request, units: units, volumes: [], companions: companions,
      conflicts: conflicts, fixed: fixed)
    plan.volumes = plan.makeVolumes()
    return plan
  }

  /// Scans a device and returns the plan for the current state of its volumes and apps.
  ///
  /// - Parameters:
  ///   - apps: the apps to purge, without the groups they share (default: the whole device).
  ///   - level: the level whose orders and age apply, as in a request.
  ///   - following: the options with the counters, and the check whether to stop.
  /// - Throws: `ModelError` if the device has none of the apps, or for an ambiguous name;
  ///   `OperationError` if the space of a volume cannot be read; `interrupted`.
  package static func make(
    _ device: Device, policy: CompiledPolicy, apps: AppNames = AppNames(),
    _ goal: PurgeRequest.Goal, level: Pressure.Level? = nil,
    following: PurgeOptions = PurgeOptions()
  ) throws -> PurgePlan {
    let device = device.stating(groupsOf: policy)
    let selected = try apps.apps(of: device)
    let only =
      selected.isEmpty
      ? nil : Set(selected.flatMap { device.containers(of: $0).map(\.logicalPrefix) })
    return try make(device, policy: policy, goal, level: level, only: only, following: following) {
      only?.contains($0.logicalPrefix) ?? true
    }
  }

  /// Returns the plan with which an entry of a container can be judged. Only the containers of its
  /// party are scanned and, for a group, those of the apps that share it, one of which may be
  /// running.
  ///
  /// - Throws: as for a device.
  package static func make(
    _ device: Device, policy: CompiledPolicy, judging container: Container
  ) throws -> PurgePlan {
    let device = device.stating(groupsOf: policy)
    var parties: Set = [party(of: container)]
    if container.kind == .group {
      parties.formUnion(device.members(of: container).map(\.app.identifier.bytes))
    }
    return try make(device, policy: policy, .byPressure) { parties.contains(party(of: $0)) }
  }

  private static func make(
    _ device: Device, policy: CompiledPolicy, _ goal: PurgeRequest.Goal,
    level: Pressure.Level? = nil, only: Set<ByteString>? = nil,
    following: PurgeOptions = PurgeOptions(), of isScanned: (Container) -> Bool
  ) throws -> PurgePlan {
    let scan = DeviceScan.run(
      device, policy: policy, options: .forPurge(following), where: isScanned)
    if scan.isInterrupted { throw PurgeRequest.interrupted }
    var request = try PurgeRequest.now(goal, level: level, for: scan, following: following)
    request.only = only
    return make(scan, request)
  }

  /// Whether nothing is to be purged: no volume is under pressure or has a goal.
  package var isIdle: Bool { volumes.allSatisfy { $0.term == nil } }

  /// Whether the candidates reach every goal.
  package var isEnough: Bool { volumes.allSatisfy { $0.missing == 0 } }

  /// The running apps and groups, which are excluded from the plan.
  package var runningParties: [PathRemark] {
    request.running.sorted { $0.key < $1.key }.map { PathRemark(path: $0.key, remark: $0.value) }
  }

  /// The immutable and append-only entries without which more could be deleted, by logical paths,
  /// except those of running apps.
  package var fixedEntries: [PathRemark] {
    zip(zip(scan.containers, fixed), freeContainers()).flatMap { found, isFree in
      let (scan, fixed) = found
      return (isFree ? fixed : []).map { entry in
        let isDirectory = scan.entries[Int(entry)].status.kind == .directory
        // A directory's flags protect its entries, but not the content of these.
        let extent =
          entry == 0
          ? ", and so neither its direct entries nor directories that are deleted as a whole can "
            + "be deleted"
          : isDirectory ? ", and so its direct entries cannot be deleted" : ""
        return PathRemark(
          path: scan.logicalPath(Int(entry)), remark: "it is immutable or append-only" + extent)
      }
    }
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
    case .directory:
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

// MARK: - Single entries

extension PurgePlan {
  /// The reason why an entry is not deleted.
  package enum Conflict: Sendable, Hashable {
    /// The policy never allows its deletion.
    case never
    /// Its class is precious, and no rule says `allow-loss`.
    case precious(DataClass)
    /// An entry of the same unit may not be deleted.
    case holds(ByteString)
    /// A file system is mounted on it.
    case mount
    /// It belongs to this program, or is one of its repositories.
    case own
    /// A directory whose content is deleted; it stays, or is removed once it is empty.
    case directory
    /// The marker file that declares its directory disposable.
    case mark
    /// A hard-linked file that would have to be truncated.
    case linked
    /// A link in place of a directory that rules name, such as a cache on another disk.
    case moved
    /// The given entry is immutable or append-only: the entry itself, its directory, or the
    /// container's directory if the entry would be moved before its deletion.
    case fixed(ByteString)
    /// A directory whose files belong together and would be deleted or emptied one by one: the
    /// container's directory, or one whose rule empties files.
    case indivisible
    /// A socket, a pipe or a device, which takes no space.
    case special
    /// It was not found.
    case missing

    /// Whether only the flags of an entry prevent the deletion.
    var isFixed: Bool { if case .fixed = self { true } else { false } }
  }

  /// The reason why a purge would or would not delete an entry.
  package struct Judgement: Sendable {
    /// The unit that the entry belongs to; nil if it is not a candidate.
    package internal(set) var unit: PurgeUnit?
    /// The unit's logical path.
    package internal(set) var unitPath: ByteString?
    /// The party of the entry.
    package let party: ByteString
    /// The unit's position among the candidates of its party, from 1, and their number.
    package internal(set) var position: Int?
    package internal(set) var candidates = 0
    /// The levels at which the unit is deleted.
    package internal(set) var levels: [Pressure.Level] = []
    /// The reason why the entry is not a candidate.
    package internal(set) var conflict: Conflict?
    /// The reason to consider its app running.
    package internal(set) var running: String?
    /// The policy's decision.
    package internal(set) var decision: CompiledPolicy.PurgeDecision?
  }

  /// Returns whether the entry at a path of a container is a candidate, and why.
  package func judge(_ container: Container, _ inner: ByteString) -> Judgement {
    var judgement = Judgement(party: Self.party(of: container))
    judgement.running = request.running[judgement.party]
    guard let number = scan.containers.firstIndex(where: { $0.container == container }),
      let entry = scan.containers[number].index(of: inner)
    else {
      judgement.conflict = .missing
      return judgement
    }
    let found = scan.containers[number]
    judgement.decision = scan.policy.purgeDecision(
      on: found.query(entry), scanStart: request.now.seconds)
    if let index = unitIndex(number, entry) {
      let unit = units[index]
      (judgement.unit, judgement.unitPath) = (unit, path(of: unit))
      let isOfParty = { (unit: PurgeUnit) in self.party(of: unit) == judgement.party }
      judgement.position = units[...index].count(where: isOfParty)
      judgement.candidates = units.count(where: isOfParty)
      judgement.levels = scan.policy.pressure.filter {
        PurgeVolume.Term($0).allows(unit, at: request.now)
      }.map(\.level)
    } else {
      judgement.conflict = conflict(number, entry)
    }
    return judgement
  }

  /// Returns the index of the unit that an entry belongs to, or nil if there is none.
  private func unitIndex(_ container: Int, _ entry: Int) -> Int? {
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
        && (wanted.contains(unit.entry)
          || unit.kind == .directory && directories.contains(unit.entry))
    }
  }

  private func conflict(_ container: Int, _ entry: Int) -> Conflict {
    let scan = scan.containers[container]
    if let known = conflicts[container][Int32(entry)] { return known }
    if scan.entries[entry].verdicts.keep.purge == .never { return .never }
    var at = entry
    while at != 0 {
      at = Int(scan.entries[at].parent)
      if let known = conflicts[container][Int32(at)] { return known }
    }
    return scan.entries[entry].status.kind == .directory ? .directory : .never
  }
}

/// The usage of each app's quotas.
struct PurgeQuotas {
  private let quotas: [Quota]
  /// The used bytes, by quota and app.
  private var used: [[ByteString: UInt64]]
  /// The counted entries by container and quota: the topmost directories and files that match.
  private var counted: [[Set<Int32>]] = []

  init(_ scans: [ContainerScan], _ policy: CompiledPolicy) {
    quotas = policy.quotas
    used = quotas.map { _ in [:] }
    for scan in scans {
      counted.append(quotas.indices.map { measure(scan, $0) })
    }
  }

  /// Adds up the matching entries of a container. Returns the topmost ones.
  private mutating func measure(_ scan: ContainerScan, _ number: Int) -> Set<Int32> {
    let quota = quotas[number]
    guard quota.kinds.contains(scan.container.kind), !scan.entries.isEmpty else { return [] }
    var top: Set<Int32> = []
    var linked: Set<FileIdentity> = []
    var sum: UInt64 = 0
    var pending: [(entry: Int, progress: Pattern.Progress?)] = [(0, quota.pattern.start)]
    while let (index, progress) = pending.popLast() {
      let entry = scan.entries[index]
      var inner = progress
      if let progress, quota.pattern.isMatch(progress) {
        top.insert(Int32(index))
        if quota.pattern.coversDescendants { inner = nil }
      }
      if inner == nil || top.contains(Int32(index)),
        entry.status.links == 1 || entry.status.kind == .directory
          || linked.insert(entry.status.identity).inserted
      {
        sum += entry.status.allocated
      }
      if let inner, inner.isHopeless { continue }
      for child in entry.children {
        let next = inner.map { progress in
          scan.withName(child) { quota.pattern.advance(progress, by: $0) }
        }
        if let next, next.isHopeless { continue }
        pending.append((child, next))
      }
    }
    used[number][PurgePlan.party(of: scan.container), default: 0] += sum
    return top
  }

  /// Sets, for each unit, how far its app is over a quota that counts the unit: the highest usage
  /// in thousandths of a quota, 0 if no quota is exceeded.
  func mark(_ units: inout [PurgeUnit], in scan: ContainerScan) {
    guard let number = units.first.map({ Int($0.container) }) else { return }
    let party = PurgePlan.party(of: scan.container)
    for (index, quota) in quotas.enumerated() {
      let (used, tops) = (used[index][party] ?? 0, counted[number][index])
      guard quota.size > 0, used > UInt64(quota.size), !tops.isEmpty else { continue }
      let (high, low) = used.multipliedFullWidth(by: 1000)
      let size = UInt64(quota.size)
      let share = high >= size ? UInt64.max : size.dividingFullWidth((high, low)).quotient
      // Units of one directory are adjacent.
      var (directory, isBelow): (Int32, Bool) = (-1, false)
      for unit in units.indices {
        let parent = scan.entries[Int(units[unit].entry)].parent
        if parent != directory {
          (directory, isBelow) = (parent, Self.isCounted(Int(parent), within: tops, in: scan))
        }
        guard isBelow || tops.contains(units[unit].entry) else { continue }
        units[unit].overQuota = max(units[unit].overQuota, UInt32(clamping: share))
      }
    }
  }

  private static func isCounted(
    _ entry: Int, within tops: Set<Int32>, in scan: ContainerScan
  ) -> Bool {
    var at = entry
    while true {
      if tops.contains(Int32(at)) { return true }
      if at == 0 { return false }
      at = Int(scan.entries[at].parent)
    }
  }
}
