import SandboxModel

@testable import PolicyEngine

/// Evaluates a random policy for an entry in a slow and simple way: layer by layer, rule by rule,
/// in text form. It shares no code with the engine except entry type names.
struct ReferenceDecider {
  let policy: RandomPolicy
  let query: EntryQuery
  let marks: [Int: [String]]
  let siblings: [Int: [String]]
  let scanStart: Int64

  typealias Words = [String: String]
  typealias Sets = [(key: String, value: String)]

  static let silence: Words = [
    "class": "unknown", "default": "always", "cloud": "always", "unencrypted": "always",
    "update": "may-vanish", "purge": "never", "restore": "restore", "protection": "",
  ]

  func verdicts() -> (keep: Words, platform: Words) {
    let isBelowCache = (0..<query.path.count).contains { depth in
      fold(depth, EntryFacts(.directory), withMarks: false, false).keep["class"] == "cache"
    }
    return fold(query.path.count, query.facts, withMarks: true, isBelowCache)
  }

  private func fold(
    _ depth: Int, _ facts: EntryFacts, withMarks: Bool, _ isBelowCache: Bool
  ) -> (keep: Words, platform: Words) {
    var (keep, platform) = (Self.silence, Self.silence)
    for layer in policy.layers {
      for rule in layer.rules + layer.appRules where matches(rule, depth, facts) {
        Self.apply(rule.sets, to: &keep)
        if rule.platform?.isEmpty != true { Self.apply(rule.sets, to: &platform) }
        Self.apply(rule.platform ?? [], to: &platform)
      }
      for marker in layer.markers where withMarks && isActive(marker, depth) {
        let sets = allowed(marker, keep["class"] ?? "", isBelowCache)
        Self.apply(sets, to: &keep)
        if !marker.isOursAlone { Self.apply(sets, to: &platform) }
      }
    }
    return (keep, platform)
  }

  /// Returns the values that a mark may set on data of this class.
  private func allowed(_ marker: RandomPolicy.Marker, _ name: String, _ isBelowCache: Bool) -> Sets
  {
    if ["cache", "temporary"].contains(name) || (name == "unknown" && isBelowCache) {
      return marker.sets
    }
    if marker.isFile, ["user-data", "inbox", "unknown"].contains(name) { return [] }
    return marker.sets.filter { $0.key == "backup" || $0.key == "restore" }
  }

  private func isActive(_ marker: RandomPolicy.Marker, _ depth: Int) -> Bool {
    marks.contains { location, names in
      names.contains(marker.id) && (location == depth || (location < depth && marker.isInherited))
    }
  }

  private func matches(_ rule: RandomPolicy.Rule, _ depth: Int, _ facts: EntryFacts) -> Bool {
    guard rule.kinds.contains(query.kind), rule.app == nil || rule.app == query.app else {
      return false
    }
    let path = Array(query.path.prefix(depth))
    guard ReferencePattern.matches(rule.pattern, path) else { return false }
    if !rule.types.isEmpty {
      let means =
        rule.types.contains(facts.type)
        || (facts.type == .database && rule.types.contains(.file))
      guard means else { return false }
    }
    if let size = rule.largerThan {
      guard facts.type != .directory, facts.size > size else { return false }
    }
    if let age = rule.olderThan {
      guard let modified = facts.modified, scanStart - modified > age else { return false }
    }
    return rule.sibling.map { isBeside($0, rule.pattern, path) } ?? true
  }

  /// Whether a name is a sibling of the entry that the pattern names before a final `/**`.
  private func isBeside(_ name: String, _ pattern: String, _ path: [[UInt8]]) -> Bool {
    var components = pattern.split(separator: "/").map(String.init)
    let isSticky = components.last == "**"
    while components.last == "**" { components.removeLast() }
    let anchor = components.joined(separator: "/")
    return (1...max(path.count, 1)).contains { count in
      count <= path.count && (isSticky || count == path.count)
        && ReferencePattern.matches(anchor, Array(path.prefix(count)))
        && (siblings[count - 1] ?? []).contains(name)
    }
  }

  private static func apply(_ sets: Sets, to words: inout Words) {
    for (key, value) in sets where key == "class" {
      words["class"] = value
      apply(RandomPolicy.classes[value] ?? [], to: &words)
    }
    for (key, value) in sets where key != "class" {
      switch (key, value) {
      case ("backup", let value) where value.hasPrefix("c:"):
        words["cloud"] = String(value.dropFirst(2))
      case ("backup", let value) where value.hasPrefix("u:"):
        words["unencrypted"] = String(value.dropFirst(2))
      case ("backup", let value):
        words["default"] = value.hasPrefix("dc:") ? "always" : value
        words["cloud"] = value.hasPrefix("dc:") ? "never" : "always"
        words["unencrypted"] = "always"
      default: words[key] = value
      }
    }
  }
}

extension Verdict {
  /// The verdict in the text form of the reference.
  var words: ReferenceDecider.Words {
    let purge: String =
      switch self.purge {
      case .never: "never"
      case .anytime: "anytime"
      case .allowed(let terms): String(terms.order)
      }
    return [
      "class": dataClass.rawValue, "default": backup.standard.rawValue,
      "cloud": backup.cloud.rawValue, "unencrypted": backup.unencrypted.rawValue,
      "update": update.rawValue, "purge": purge, "restore": restore.rawValue,
      "protection": protection?.rawValue ?? "",
    ]
  }
}
