internal import Codecs
internal import SandboxModel

extension DocumentReader {
  mutating func rules(_ node: YAMLNode?, in kinds: Set<ContainerKind>) -> [Rule] {
    var rules: [Rule] = []
    for element in node?.sequence ?? [] {
      if let rule = rule(element, in: kinds) { rules.append(rule) }
    }
    return rules
  }

  private mutating func rule(_ node: YAMLNode, in standard: Set<ContainerKind>) -> Rule? {
    guard let id = node["id"]?.text, let match = node["match"], match.scalar != nil else {
      return nil
    }
    if let idNode = node["id"] { note(id, idNode) }
    guard let pattern = pattern(match, ignoringCase: node["ignore-case"]?.bool == true) else {
      return nil
    }
    let conditions = conditions(node["when"])
    checkAges(node, conditions)
    if !conditions.siblings.isEmpty, pattern.components.allSatisfy(\.isAnyDepth) {
      add(
        .condition, at: match.mark, "'sibling' with a pattern that names no entry",
        expected: "a component before `**`")
    }
    return Rule(
      id: id, location: location(node), kinds: kinds(node["in"], standard: standard),
      pattern: pattern, settings: settings(node), platform: platform(node["platform"]),
      conditions: conditions, versions: versions(node["versions"]), why: node["why"]?.text,
      source: node["source"]?.text, allowLoss: node["allow-loss"]?.text,
      patternLocation: location(match))
  }

  mutating func pattern(_ node: YAMLNode, ignoringCase: Bool) -> Pattern? {
    guard let scalar = node.scalar else { return nil }
    do {
      return try Pattern(parsing: scalar.text, ignoringCase: ignoringCase)
    } catch {
      add(
        .pattern, at: mark(of: error.offset, in: scalar, node.mark), error.problem,
        expected: error.expected)
      return nil
    }
  }

  /// Returns the position of a character of a scalar, or the scalar's start if escapes or folding
  /// make the position ambiguous.
  private func mark(of offset: Int, in scalar: YAMLNode.Scalar, _ start: Mark) -> Mark {
    switch scalar.style {
    case .plain: return Mark(line: start.line, column: start.column + offset)
    case .quoted:
      let hidden = scalar.text.unicodeScalars.contains { "\\'\"\n".unicodeScalars.contains($0) }
      return hidden ? start : Mark(line: start.line, column: start.column + 1 + offset)
    case .block: return start
    }
  }

  /// Refuses age conditions in rules that set anything but `purge`: in a backup rule they would
  /// drop files from backups as time passes.
  private mutating func checkAges(_ node: YAMLNode, _ conditions: Conditions) {
    let ages = node["when"]?.mapping?.filter { $0.name == "older-than" || $0.name == "newer-than" }
    let values = ["class", "backup", "update", "restore", "platform"]
    let other = values.first { node[$0] != nil }
    for age in ages ?? [] where other != nil || node["purge"] == nil {
      let problem =
        other.map { "'\(age.name)' in a rule that sets '\($0)'" }
        ?? "'\(age.name)' in a rule that does not set 'purge'"
      add(
        .condition, at: age.keyMark, problem,
        expected:
          "a rule that sets 'purge' alone: the content of a backup must not depend on the date")
    }
  }

  private func conditions(_ node: YAMLNode?) -> Conditions {
    var conditions = Conditions()
    conditions.largerThan = node?["larger-than"]?.text.flatMap(Quantity.bytes)
    conditions.types = Set(Self.many(node?["type"]).compactMap { word($0) })
    conditions.siblings = Self.many(node?["sibling"]).compactMap(\.text)
    conditions.olderThan = node?["older-than"]?.text.flatMap(Quantity.seconds)
    conditions.newerThan = node?["newer-than"]?.text.flatMap(Quantity.seconds)
    return conditions
  }

  func settings(_ node: YAMLNode) -> Settings {
    Settings(
      dataClass: word(node["class"]), backup: backup(node["backup"]), update: word(node["update"]),
      purge: purge(node["purge"]), restore: word(node["restore"]))
  }

  func platform(_ node: YAMLNode?) -> PlatformSetting {
    guard let node else { return .same }
    return node.mapping == nil ? .unchanged : .different(settings(node))
  }

  func backup(_ node: YAMLNode?) -> BackupSetting? {
    guard let node else { return nil }
    guard node.mapping != nil else {
      return word(node, BackupMode.self).map { BackupSetting($0) }
    }
    return BackupSetting(
      word(node["default"]), cloud: word(node["cloud"]), unencrypted: word(node["unencrypted"]))
  }

  func purge(_ node: YAMLNode?) -> PurgeDisposition? {
    guard let node else { return nil }
    guard node.mapping != nil else {
      return node.text == "anytime" ? .anytime : node.text == "never" ? .never : nil
    }
    guard let order = node["order"]?.integer.flatMap({ UInt16(exactly: $0) }) else { return nil }
    return .allowed(
      PurgeTerms(
        order: order, when: word(node["when"]) ?? .underPressure,
        unit: word(node["unit"]) ?? .file, action: word(node["action"]) ?? .unlink))
  }

  func versions(_ node: YAMLNode?) -> VersionRange {
    node?.text.flatMap { VersionRange($0) } ?? .all
  }
}
