/// The reason why a snapshot is kept.
package enum KeepReason: Hashable, Sendable {
  /// It is one of the newest.
  case last
  /// It is the newest of its slot, or the oldest of all while the rule has counts left.
  case period(Period, isOldest: Bool)
  /// It was made within a span before the newest.
  case within(RetentionSpan)
  /// It was made within a span and is the newest of its slot, or the oldest of all.
  case periodWithin(Period, RetentionSpan, isOldest: Bool)
  /// It has all of these tags.
  case tags(TagList)
  /// It is the oldest of its group.
  case oldest
  /// It is pinned.
  case pinned
  /// It is dated in the future.
  case future
  /// It was made automatically, less than the policy's time ago, in seconds.
  case retain(seconds: Int64)
  /// It was made automatically, and no policy says how long such snapshots are kept.
  case retainUnknown
  /// The rules keep no snapshot of its group.
  case refused
  /// Other snapshots were named for removal, but not this one.
  case notNamed
}

extension KeepReason: CustomStringConvertible {
  /// The reason in the words of docs/retention.md.
  package var description: String {
    switch self {
    case .last: "last"
    case .period(let period, let isOldest): Self.text(period, isOldest)
    case .within(let span): "within \(span)"
    case .periodWithin(let period, let span, let isOldest):
      "\(Self.text(period, isOldest)) within \(span)"
    case .tags(let tags): tags.description.isEmpty ? "no tags" : "tag \(tags)"
    case .oldest: "oldest"
    case .pinned: "pinned"
    case .future: "future"
    case .retain(let seconds): "retain \(Self.text(seconds: seconds))"
    case .retainUnknown: "retain unknown"
    case .refused: "refused"
    case .notNamed: "not named"
    }
  }

  private static func text(_ period: Period, _ isOldest: Bool) -> String {
    isOldest ? "oldest \(period.rawValue)" : period.rawValue
  }

  /// Returns a duration in the largest unit of policy files that divides it.
  private static func text(seconds: Int64) -> String {
    for (unit, size) in [("d", 86_400), ("h", 3600), ("m", 60)] as [(String, Int64)]
    where seconds >= size && seconds % size == 0 {
      return "\(seconds / size)\(unit)"
    }
    return "\(seconds)s"
  }
}
