import SandboxModel

@testable import PolicyEngine

/// A policy of several layers in text form. It is written as YAML for the engine, and evaluated
/// directly by `ReferenceDecider`.
struct RandomPolicy {
  struct Rule {
    var id: String
    var pattern: String
    var kinds: [ContainerKind]
    var app: String?
    /// The values that the rule sets, by key, in the order of the file.
    var sets: [(key: String, value: String)]
    /// The values that the rule sets for the platform: nil for the same values, empty for none.
    var platform: [(key: String, value: String)]?
    var types: [EntryType] = []
    var largerThan: Int64?
    var olderThan: Int64?
    var sibling: String?
  }

  struct Marker {
    var id: String
    var isFile: Bool
    var isInherited: Bool
    var sets: [(key: String, value: String)]
    var isOursAlone: Bool
  }

  struct Layer {
    var rules: [Rule] = []
    var appRules: [Rule] = []
    var markers: [Marker] = []
  }

  /// The base, the policy that extends it, the base's final part, and an overlay.
  var layers: [Layer]
  var random: SeededRandom
  private var number = 0

  static let classNames = ["user-data", "inbox", "support", "cache", "temporary", "unknown"]
  static let classes: [String: [(key: String, value: String)]] = [
    "user-data": dispositions("always", "preserve", "never", "restore"),
    "inbox": dispositions("always", "preserve", "never", "skip"),
    "support": dispositions("when-changed", "preserve", "never", "restore"),
    "cache": dispositions("never", "may-vanish", "20", "recreate-empty"),
    "temporary": dispositions("never", "discard", "anytime", "recreate-empty"),
    "unknown": dispositions("always", "may-vanish", "never", "restore"),
  ]

  private static func dispositions(
    _ backup: String, _ update: String, _ purge: String, _ restore: String
  ) -> [(key: String, value: String)] {
    [("backup", backup), ("update", update), ("purge", purge), ("restore", restore)]
  }

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    layers = []
    for index in 0..<4 {
      var layer = Layer()
      layer.rules = (0..<random.below(6)).map { _ in rule() }
      if index != 2 { layer.appRules = (0..<random.below(3)).map { _ in rule(app: "app.one") } }
      layer.markers = (0..<random.below(3)).map { _ in marker() }
      layers.append(layer)
    }
  }

  private mutating func name(_ letter: String) -> String {
    number += 1
    return "\(letter)\(number)"
  }

  private mutating func rule(app: String? = nil) -> Rule {
    var patterns = RandomPatterns(seed: random.next())
    var rule = Rule(
      id: name("r"), pattern: patterns.pattern(), kinds: random.pick([[.data], [.data, .group]]),
      app: app, sets: settings())
    switch random.below(8) {
    case 0: rule.types = [random.pick(EntryType.allCases)]
    case 1: rule.largerThan = 100
    case 2 where !rule.pattern.split(separator: "/").allSatisfy({ $0 == "**" }):
      rule.sibling = random.pick(["s", "t"])
    case 3:
      rule.sets = [("purge", random.pick(["never", "anytime", "30"]))]
      rule.olderThan = 1_000
    default: break
    }
    if rule.olderThan == nil, random.chance(25) {
      let protection = random.pick(ProtectionClass.allCases).rawValue
      if random.chance(50) { rule.sets = [] }
      rule.sets.append(("protection", protection))
    }
    if rule.olderThan == nil, random.chance(25) {
      rule.platform = random.chance(50) ? [] : settings()
    }
    return rule
  }

  private mutating func settings() -> [(key: String, value: String)] {
    var sets: [(key: String, value: String)] = []
    if random.chance(40) { sets.append(("class", random.pick(Self.classNames))) }
    if random.chance(40) {
      sets.append(
        (
          "backup",
          random.pick([
            "always", "never", "when-changed", "c:never", "u:never", "c:always", "dc:always,never",
          ])
        ))
    }
    if random.chance(20) { sets.append(("update", random.pick(["preserve", "discard"]))) }
    if random.chance(20) { sets.append(("purge", random.pick(["never", "anytime", "30"]))) }
    if random.chance(20) { sets.append(("restore", random.pick(["restore", "skip"]))) }
    return sets.isEmpty ? [("backup", random.pick(["always", "never"]))] : sets
  }

  private mutating func marker() -> Marker {
    var sets: [(key: String, value: String)] = []
    if random.chance(30) { sets.append(("class", random.pick(["cache", "temporary"]))) }
    if random.chance(80) {
      sets.append(("backup", random.pick(["never", "never", "always", "c:never"])))
    }
    if random.chance(30) { sets.append(("purge", random.pick(["anytime", "30"]))) }
    if random.chance(30) { sets.append(("restore", "skip")) }
    if sets.isEmpty { sets = [("backup", "never")] }
    return Marker(
      id: name("m"), isFile: random.chance(50), isInherited: random.chance(70), sets: sets,
      isOursAlone: random.chance(20))
  }
}

// MARK: - As YAML

extension RandomPolicy {
  var library: PolicyLibrary {
    let classes = Self.classes.map { name, values in
      "  \(name): {\(values.map(Self.yaml).joined(separator: ", "))}\n"
    }
    let base =
      "policy: base\nschema: 1\nclasses:\n\(classes.joined())" + Self.body(layers[0])
      + "finally:\n  rules: [\(Self.list(layers[2].rules))]\n"
      + "  markers: [\(Self.list(layers[2].markers))]\n"
    let top = "policy: top\nschema: 1\nextends: base\n" + Self.body(layers[1])
    let over = "overlay: all\nschema: 1\n" + Self.body(layers[3])
    return PolicyLibrary([
      PolicySource(name: "base", text: base, origin: .builtin),
      PolicySource(name: "top", text: top, origin: .builtin),
      PolicySource(name: "over", text: over, origin: .builtin),
    ])
  }

  private static func body(_ layer: Layer) -> String {
    "rules: [\(list(layer.rules))]\napps: {app.one: {rules: [\(list(layer.appRules))]}}\n"
      + "markers: [\(list(layer.markers))]\n"
  }

  private static func list(_ rules: [Rule]) -> String { rules.map(yaml).joined(separator: ", ") }

  private static func list(_ markers: [Marker]) -> String {
    markers.map(yaml).joined(separator: ", ")
  }

  private static func yaml(_ rule: Rule) -> String {
    var parts = ["id: \(rule.id)", "match: '\(rule.pattern)'"]
    parts.append("in: [\(rule.kinds.map(\.rawValue).joined(separator: ", "))]")
    parts += rule.sets.map(yaml)
    if let platform = rule.platform {
      let values = platform.map(yaml).joined(separator: ", ")
      parts.append(platform.isEmpty ? "platform: unchanged" : "platform: {\(values)}")
    }
    var conditions: [String] = []
    if !rule.types.isEmpty {
      conditions.append("type: [\(rule.types.map(\.rawValue).joined(separator: ", "))]")
    }
    if let size = rule.largerThan { conditions.append("larger-than: \(size)") }
    if let age = rule.olderThan { conditions.append("older-than: \(age)s") }
    if let sibling = rule.sibling { conditions.append("sibling: \(sibling)") }
    if !conditions.isEmpty { parts.append("when: {\(conditions.joined(separator: ", "))}") }
    return "{\(parts.joined(separator: ", "))}"
  }

  private static func yaml(_ marker: Marker) -> String {
    var parts = ["id: \(marker.id)", marker.isFile ? "file: \(marker.id)" : "xattr: \(marker.id)"]
    if marker.isInherited { parts.append("inherit: directory") }
    var sets = marker.sets.map(yaml)
    if marker.isOursAlone { sets.append("platform: unchanged") }
    parts.append("then: {\(sets.joined(separator: ", "))}")
    return "{\(parts.joined(separator: ", "))}"
  }

  private static func yaml(_ set: (key: String, value: String)) -> String {
    switch (set.key, set.value) {
    case ("purge", let order) where Int(order) != nil: "purge: {order: \(order)}"
    case ("backup", let value) where value.hasPrefix("c:"): "backup: {cloud: \(value.dropFirst(2))}"
    case ("backup", let value) where value.hasPrefix("u:"):
      "backup: {unencrypted: \(value.dropFirst(2))}"
    case ("backup", "dc:always,never"): "backup: {default: always, cloud: never}"
    default: "\(set.key): \(set.value)"
    }
  }
}
