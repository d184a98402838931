package import ArchiveStore

/// The rules that say which snapshots of a group are kept. A snapshot is kept if any rule keeps it.
package struct RetentionRules: Hashable, Sendable {
  /// The number of newest snapshots to keep.
  package var last = Count.number(0)
  /// The number of newest slots of each period whose newest snapshot is kept.
  package var counts: [Period: Count] = [:]
  /// The span before the newest snapshot in which all are kept.
  package var within: RetentionSpan?
  /// The span before the newest snapshot in which the newest of each slot is kept.
  package var withinPeriods: [Period: RetentionSpan] = [:]
  /// Snapshots with all tags of one of these lists are kept.
  package var tags: [TagList] = []
  /// Whether the oldest snapshot is kept.
  package var keepsOldest = false

  /// Creates rules that keep nothing.
  package init() {}

  /// Whether no rule is set that selects snapshots. To keep the oldest is an addition to others.
  package var isEmpty: Bool {
    let spans = (within.map { [$0] } ?? []) + withinPeriods.values
    return !last.isSet && !counts.values.contains(where: \.isSet) && tags.isEmpty
      && spans.allSatisfy(\.isZero)
  }
}

extension RetentionRules {
  /// The number of snapshots or slots that a rule keeps.
  package enum Count: Hashable, Sendable, CustomStringConvertible {
    case unlimited
    case number(Int)

    /// Parses `unlimited` or a number from 0. Returns nil for any other text.
    package init?(_ text: String) {
      if text == "unlimited" {
        self = .unlimited
      } else if text.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(text) {
        self = .number(number)
      } else {
        return nil
      }
    }

    package var description: String {
      switch self {
      case .unlimited: "unlimited"
      case .number(let number): "\(number)"
      }
    }

    /// Whether more snapshots can be kept. 0 means that the rule is not set.
    var isSet: Bool { self != .number(0) }

    /// Counts a kept snapshot.
    mutating func decrement() {
      if case .number(let number) = self { self = .number(number - 1) }
    }
  }
}

/// Tags that a snapshot must have all of; an empty list matches snapshots without tags.
package struct TagList: Hashable, Sendable, CustomStringConvertible {
  private let tags: [String]

  /// Parses tags separated by commas; the empty text is the empty list. Returns nil if one of
  /// several tags is empty.
  package init?(_ text: String) {
    tags =
      text.isEmpty
      ? []
      : text.split(separator: ",", omittingEmptySubsequences: false).map {
        String($0)
      }
    if tags.contains(where: \.isEmpty) { return nil }
  }

  /// Whether the list matches the tags of a snapshot.
  package func matches(_ head: SnapshotHead) -> Bool {
    tags.isEmpty ? head.tags.isEmpty : tags.allSatisfy(head.tags.contains)
  }

  package var description: String { tags.joined(separator: ",") }
}
