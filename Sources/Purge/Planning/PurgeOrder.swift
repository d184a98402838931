internal import DeviceScan
internal import PolicyEngine
internal import SystemIO

/// The order in which units are deleted: by the rule's order; apps over their quota first, by the
/// excess; longest unused first; then the largest; then by path (docs/purge.md, "Order").
struct PurgeOrder: Comparable {
  /// The rule's order, the complement of the quota excess, and the age, most significant first.
  private let urgency: UInt64
  /// The complement of the size.
  private let smallness: UInt64
  private let rank: UInt32
  private let index: UInt32

  private init(_ unit: PurgeUnit, index: Int, at now: Timestamp) {
    let age = PurgeUnit.Age(unit, at: now).rawValue
    urgency =
      UInt64(unit.terms.order) << 48 | UInt64(UInt32.max - unit.overQuota) << 8
      | UInt64(UInt8(bitPattern: age))
    smallness = UInt64.max - unit.bytes
    rank = unit.rank
    self.index = UInt32(index)
  }

  static func < (left: Self, right: Self) -> Bool {
    if left.urgency != right.urgency { return left.urgency < right.urgency }
    if left.smallness != right.smallness { return left.smallness < right.smallness }
    return left.rank < right.rank
  }

  /// Sorts units by keys that are computed once for each.
  static func sort(_ units: inout [PurgeUnit], at now: Timestamp) {
    var order = units.indices.map { PurgeOrder(units[$0], index: $0, at: now) }
    order.sort()
    units = order.map { units[Int($0.index)] }
  }
}

extension PurgeOrder {
  /// The ranks of units in the byte order of their paths, computed without building any path.
  struct PathRanks {
    private var next: UInt32 = 0
    private var siblings: [Sibling] = []

    /// A directory's entry with its sort key.
    private struct Sibling {
      let entry: Int32
      let start: Int32
      let end: Int32
      /// The byte after the name: a slash for a directory; for a file -1, which sorts before any
      /// continuation.
      let behind: Int16
      /// The eight bytes of the path after the common prefix of all names of the directory, most
      /// significant byte first, padded with zeros.
      var key: UInt64 = 0
    }

    /// Ranks the units of a container. Call it for the containers in the order of their paths.
    mutating func rank(_ units: inout [PurgeUnit], in scan: ContainerScan) {
      guard !units.isEmpty else { return }
      let marks = Self.marks(of: units, in: scan)
      var pending: [Int32] = [0]
      while let entry = pending.popLast() {
        let unit = Int(marks[Int(entry)]) - Self.first
        if unit >= 0 {
          units[unit].rank = next
          next += 1
          continue
        }
        siblings.removeAll(keepingCapacity: true)
        for child in scan.entries[Int(entry)].children where marks[child] != 0 {
          siblings.append(Self.sibling(child, scan))
        }
        scan.names.withSpan { sort($0) }
        for sibling in siblings.reversed() { pending.append(sibling.entry) }
      }
    }

    /// Returns a value for each entry: 0 if no unit is at or below it, 1 for a directory above a
    /// unit, otherwise the index of the unit plus 2.
    private static func marks(
      of units: [PurgeUnit], in scan: ContainerScan
    ) -> SpillableArray<Int32> {
      var marks = SpillableArray<Int32>(repeating: 0, count: scan.entries.count)
      for index in units.indices {
        let entry = Int(units[index].entry)
        marks[entry] = Int32(index + first)
        var at = Int(scan.entries[entry].parent)
        while marks[at] == 0 {
          marks[at] = 1
          at = Int(scan.entries[at].parent)
        }
      }
      return marks
    }

    private static let first = 2

    private static func sibling(_ index: Int, _ scan: ContainerScan) -> Sibling {
      let range = scan.entries[index].nameRange
      let isDirectory = scan.entries[index].status.kind == .directory
      return Sibling(
        entry: Int32(index), start: Int32(range.lowerBound), end: Int32(range.upperBound),
        behind: isDirectory ? Int16(UInt8(ascii: "/")) : -1)
    }

    /// Sorts siblings in path order: a directory sorts as if its name ended with a slash.
    private mutating func sort(_ names: Span<UInt8>) {
      let common = commonCount(names)
      for index in siblings.indices {
        siblings[index].key = Self.key(siblings[index], from: common, names)
      }
      siblings.sort { left, right in
        left.key != right.key ? left.key < right.key : Self.precedes(left, right, in: names)
      }
    }

    /// Returns the length of the common prefix of all names.
    private func commonCount(_ names: Span<UInt8>) -> Int {
      guard let first = siblings.first else { return 0 }
      var count = Int(first.end - first.start)
      for sibling in siblings.dropFirst() {
        let most = min(count, Int(sibling.end - sibling.start))
        var same = 0
        while same < most, names[Int(first.start) &+ same] == names[Int(sibling.start) &+ same] {
          same &+= 1
        }
        count = same
      }
      return count
    }

    private static func key(_ sibling: Sibling, from start: Int, _ names: Span<UInt8>) -> UInt64 {
      var (key, at) = (UInt64(0), Int(sibling.start) + start)
      for _ in 0..<8 {
        key <<= 8
        if at < sibling.end {
          key |= UInt64(names[at])
        } else if at == sibling.end, sibling.behind > 0 {
          key |= UInt64(sibling.behind)
        }
        at &+= 1
      }
      return key
    }

    private static func precedes(_ left: Sibling, _ right: Sibling, in names: Span<UInt8>) -> Bool {
      var (one, other) = (Int(left.start), Int(right.start))
      while one < left.end, other < right.end {
        let (x, y) = (names[one], names[other])
        if x != y { return x < y }
        one &+= 1
        other &+= 1
      }
      let end = one < left.end ? Int16(names[one]) : left.behind
      let otherEnd = other < right.end ? Int16(names[other]) : right.behind
      return end < otherEnd
    }
  }
}
