internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

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

  /// Sets how far the app of each unit is over a quota that counts the unit: the highest usage in
  /// thousandths of a quota, 0 if no quota is exceeded.
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
