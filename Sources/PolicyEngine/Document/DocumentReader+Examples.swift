internal import Codecs
internal import SandboxModel

extension DocumentReader {
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
      platform: node["platform"].map(expectation) ?? Expectation())
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

  private func expectation(_ node: YAMLNode) -> Expectation {
    func placed<Value>(_ node: YAMLNode?, _ value: Value?) -> Expectation.Placed<Value>? {
      guard let node, let value else { return nil }
      return Expectation.Placed(value: value, location: location(node))
    }
    return Expectation(
      dataClass: placed(node["class"], word(node["class"])),
      backup: placed(node["backup"], backup(node["backup"])),
      update: placed(node["update"], word(node["update"])),
      purge: placed(node["purge"], purgeExpectation(node["purge"])),
      restore: placed(node["restore"], word(node["restore"])))
  }

  private func purgeExpectation(_ node: YAMLNode?) -> PurgeExpectation? {
    guard let node else { return nil }
    guard node.mapping != nil else {
      return node.text == "never"
        ? PurgeExpectation(isAllowed: false)
        : PurgeExpectation(isAllowed: true, order: 0, when: .anytime)
    }
    return PurgeExpectation(
      isAllowed: true, order: node["order"]?.integer.flatMap { UInt16(exactly: $0) },
      when: word(node["when"]), unit: word(node["unit"]), action: word(node["action"]))
  }
}
