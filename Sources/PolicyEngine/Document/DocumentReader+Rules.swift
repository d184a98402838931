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
    if let idNode = node["id"] { record(id, idNode) }
    guard let pattern = pattern(match, ignoringCase: node["ignore-case"]?.bool == true) else {
      return nil
    }
    let conditions = conditions(node["when"])
    checkAges(node, conditions)
    checkSiblings(Self.many(node["when"]?["sibling"]))
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
  private mutating func checkAges(_ node: YAMLNode, _ conditions: Rule.Conditions) {
    let ages = node["when"]?.mapping?.filter { $0.name == "older-than" || $0.name == "newer-than" }
    let values = ["class", "backup", "update", "restore", "protection", "platform"]
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

  /// Refuses siblings that are not names; those of directories end with a slash.
  private mutating func checkSiblings(_ nodes: [YAMLNode]) {
    for node in nodes {
      guard let text = node.text else { continue }
      let name = text.hasSuffix("/") ? text.dropLast() : text[...]
      if !name.isEmpty, name != ".", name != "..", !name.contains("/") { continue }
      add(
        .condition, at: node.mark, "the sibling '\(text)' is not a name",
        expected: "'NAME' for a file or link, or 'NAME/' for a directory")
    }
  }

  private func conditions(_ node: YAMLNode?) -> Rule.Conditions {
    var conditions = Rule.Conditions()
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
      purge: purge(node["purge"]), restore: word(node["restore"]),
      protection: word(node["protection"]))
  }

  func platform(_ node: YAMLNode?) -> Settings.Platform {
    guard let node else { return .same }
    return node.mapping == nil ? .unchanged : .different(settings(node))
  }

  func backup(_ node: YAMLNode?) -> Settings.Backup? {
    guard let node else { return nil }
    guard node.mapping != nil else {
      return word(node, BackupDisposition.Mode.self).map { Settings.Backup($0) }
    }
    return Settings.Backup(
      word(node["default"]), cloud: word(node["cloud"]), unencrypted: word(node["unencrypted"]))
  }

  func purge(_ node: YAMLNode?) -> PurgeDisposition? {
    guard let node else { return nil }
    guard node.mapping != nil else {
      return node.text == "anytime" ? .anytime : node.text == "never" ? .never : nil
    }
    guard let order = node["order"]?.integer.flatMap({ UInt16(exactly: $0) }) else { return nil }
    return .allowed(
      PurgeDisposition.Terms(
        order: order, when: word(node["when"]) ?? .underPressure,
        unit: word(node["unit"]) ?? .file, action: word(node["action"]) ?? .unlink))
  }

  func versions(_ node: YAMLNode?) -> OSVersion.Range {
    node?.text.flatMap { OSVersion.Range($0) } ?? .all
  }

  mutating func markers(_ node: YAMLNode?) -> [Marker] {
    var markers: [Marker] = []
    for element in node?.sequence ?? [] {
      if let marker = marker(element) { markers.append(marker) }
    }
    return markers
  }

  private mutating func marker(_ node: YAMLNode) -> Marker? {
    guard let id = node["id"]?.text, let then = node["then"] else { return nil }
    if let idNode = node["id"] { record(id, idNode) }
    guard let sign = sign(node) else { return nil }
    return Marker(
      id: id, location: location(node), sign: sign,
      kinds: kinds(node["in"], standard: Set(ContainerKind.allCases)),
      isInherited: node["inherit"] != nil, settings: settings(then),
      platform: then["platform"] == nil ? .same : .unchanged, versions: versions(node["versions"]),
      why: node["why"]?.text, source: node["source"]?.text)
  }

  private mutating func sign(_ node: YAMLNode) -> Marker.Sign? {
    for entry in node.mapping ?? [] {
      if entry.name == "value", node["xattr"] == nil {
        add(
          .key, at: entry.keyMark, "'value' without 'xattr'", expected: "'begins-with' for a file")
      }
      if entry.name == "begins-with", node["file"] == nil {
        add(
          .key, at: entry.keyMark, "'begins-with' without 'file'",
          expected: "'value' for an attribute")
      }
    }
    if let name = node["xattr"]?.text, !name.isEmpty {
      return .attribute(name: name, value: node["value"]?.text)
    }
    guard let file = node["file"], let name = file.text, !name.isEmpty else { return nil }
    if name.utf8.contains(UInt8(ascii: "/")) {
      add(
        .value, at: file.mark, "'file' is a path",
        expected: "the name of a file in the directory that it marks")
      return nil
    }
    return .file(name: name, beginsWith: node["begins-with"]?.text)
  }

  mutating func examples(_ node: YAMLNode?) -> [Example] {
    var examples: [Example] = []
    for element in node?.sequence ?? [] {
      if let example = example(element) { examples.append(example) }
    }
    return examples
  }

  private mutating func example(_ node: YAMLNode) -> Example? {
    guard let kind: ContainerKind = word(node["in"]), let pathNode = node["path"],
      let text = pathNode.text, let path = path(text, pathNode.mark)
    else { return nil }
    let age = node["age"]?.text.flatMap(Quantity.seconds)
    let facts = EntryFacts(
      word(node["type"]) ?? .file, size: node["size"]?.text.flatMap(Quantity.bytes) ?? 0,
      modified: age.map { Example.scanStart - $0 })
    let expected = expectation(node)
    return Example(
      location: location(node), kind: kind, path: path, app: node["app"]?.text,
      group: node["group"]?.text, facts: facts, marks: names(node["marked"], above: path),
      holdings: names(node["holds"], above: path),
      osVersion: node["os-version"]?.text.flatMap { OSVersion($0) },
      destination: destination(node["for"]), expected: expected,
      platform: node["platform"].map(expectation) ?? Example.Expectation())
  }

  private mutating func path(_ text: String, _ mark: Mark) -> [[UInt8]]? {
    guard !text.isEmpty else { return [] }
    let components = text.utf8.split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
    ).map { Array($0) }
    let isRefused = components.contains { name in
      name.isEmpty || name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8)
    }
    if isRefused {
      add(
        .value, at: mark, "'\(text)' is not a path below a container's root",
        expected: "names separated by single slashes")
      return nil
    }
    return components
  }

  /// Returns names by directory and refuses directories that are not on the example's path.
  private mutating func names(_ node: YAMLNode?, above path: [[UInt8]]) -> [[[UInt8]]: [String]] {
    var names: [[[UInt8]]: [String]] = [:]
    for entry in node?.mapping ?? [] {
      guard let directory = self.path(entry.name, entry.keyMark) else { continue }
      guard path.starts(with: directory) else {
        add(
          .value, at: entry.keyMark, "'\(entry.name)' is not part of the example's path",
          expected: "the path or a directory above it")
        continue
      }
      names[directory] = Self.many(entry.value).compactMap(\.text)
    }
    return names
  }

  private func destination(_ node: YAMLNode?) -> Destination? {
    switch node?.text {
    case "local": Destination()
    case "cloud": Destination(isCloud: true)
    case "unencrypted": Destination(isUnencrypted: true)
    default: nil
    }
  }

  private func expectation(_ node: YAMLNode) -> Example.Expectation {
    func located<Value>(_ node: YAMLNode?, _ value: Value?) -> Example.Expectation.Located<Value>? {
      guard let node, let value else { return nil }
      return Example.Expectation.Located(value: value, location: location(node))
    }
    return Example.Expectation(
      dataClass: located(node["class"], word(node["class"])),
      backup: located(node["backup"], backup(node["backup"])),
      update: located(node["update"], word(node["update"])),
      purge: located(node["purge"], purgeExpectation(node["purge"])),
      restore: located(node["restore"], word(node["restore"])),
      protection: located(node["protection"], word(node["protection"])))
  }

  private func purgeExpectation(_ node: YAMLNode?) -> Example.Expectation.Purge? {
    guard let node else { return nil }
    guard node.mapping != nil else {
      return node.text == "never"
        ? Example.Expectation.Purge(isAllowed: false)
        : Example.Expectation.Purge(isAllowed: true, order: 0, when: .anytime)
    }
    return Example.Expectation.Purge(
      isAllowed: true, order: node["order"]?.integer.flatMap { UInt16(exactly: $0) },
      when: word(node["when"]), unit: word(node["unit"]), action: word(node["action"]))
  }
}
