internal import Codecs
internal import SandboxModel

/// Converts the nodes of a policy file into values.
///
/// `GrammarCheck` reports violations of the grammar. This reader ignores refused nodes and reports
/// only mistakes beyond the grammar.
struct DocumentReader {
  let file: String
  var issues: [PolicyIssue] = []
  private var identifiers: [String: PolicyLocation] = [:]

  init(file: String) { self.file = file }

  mutating func document(_ node: YAMLNode, _ source: PolicySource) -> PolicyDocument? {
    guard let role = role(node) else { return nil }
    let layout = node["layout"]?.text.flatMap { Layout(rawValue: $0) }
    refuseOverlayKeys(node, role)
    return PolicyDocument(
      source: source, role: role, title: node["title"]?.text, extends: references(node["extends"]),
      layout: layout, classes: classes(node["classes"]), containers: containers(node["containers"]),
      retain: retain(node["retain"]), rules: rules(node["rules"], in: [.data, .extension]),
      apps: owned(node["apps"], in: [.data, .extension]),
      groups: owned(node["groups"], in: [.group]),
      groupMembers: members(node["groups"]), markers: markers(node["markers"]),
      finalRules: rules(node["finally"]?["rules"], in: [.data, .extension]),
      finalMarkers: markers(node["finally"]?["markers"]), pressure: pressure(node["pressure"]),
      quotas: quotas(node["quotas"]), examples: examples(node["examples"]), content: node)
  }

  private func role(_ node: YAMLNode) -> PolicyDocument.Role? {
    if let name = node["policy"]?.text, !name.isEmpty { return .policy(name) }
    guard let overlay = node["overlay"] else { return nil }
    let names = overlay.sequence?.compactMap(\.text) ?? overlay.text.map { [$0] } ?? []
    return .overlay(names.contains("all") ? [] : Set(names))
  }

  private mutating func refuseOverlayKeys(_ node: YAMLNode, _ role: PolicyDocument.Role) {
    guard case .overlay = role else { return }
    for entry in node.mapping ?? [] {
      switch entry.name {
      case "extends", "layout":
        add(
          .key, at: entry.keyMark, "an overlay has '\(entry.name)'",
          expected: "only 'overlay', with the layouts")
      case "finally":
        add(
          .key, at: entry.keyMark, "an overlay has 'finally'",
          expected: "'rules' and 'markers': overlays apply after all policies")
      default: break
      }
    }
  }

  private func references(_ node: YAMLNode?) -> [PolicyDocument.Reference] {
    Self.many(node).compactMap { node in
      node.text.map {
        PolicyDocument.Reference(name: $0, location: PolicyLocation(file, node.mark))
      }
    }
  }

  mutating func owned(
    _ node: YAMLNode?, in kinds: Set<ContainerKind>
  ) -> [PolicyDocument.OwnedRules] {
    var owned: [PolicyDocument.OwnedRules] = []
    for entry in node?.mapping ?? [] {
      let rules = rules(entry.value["rules"], in: kinds)
      if !rules.isEmpty { owned.append(PolicyDocument.OwnedRules(owner: entry.name, rules: rules)) }
    }
    return owned
  }

  private func members(_ node: YAMLNode?) -> [String: [String]] {
    var members: [String: [String]] = [:]
    for entry in node?.mapping ?? [] {
      let names = entry.value["members"]?.sequence?.compactMap(\.text) ?? []
      if !names.isEmpty { members[entry.name] = names }
    }
    return members
  }

  // MARK: - Helpers

  /// Returns the elements of a list, or the single value.
  static func many(_ node: YAMLNode?) -> [YAMLNode] { node.map { $0.sequence ?? [$0] } ?? [] }

  func location(_ node: YAMLNode) -> PolicyLocation { PolicyLocation(file, node.mark) }

  mutating func add(
    _ kind: PolicyIssue.Kind, at mark: Mark, _ problem: String, expected: String,
    severity: PolicyIssue.Severity = .error
  ) {
    issues.append(
      PolicyIssue(
        kind, at: PolicyLocation(file, mark), problem, expected: expected, severity: severity))
  }

  /// Records an identifier and refuses a duplicate in the same file.
  mutating func record(_ identifier: String, _ node: YAMLNode) {
    if let earlier = identifiers[identifier] {
      add(
        .duplicate, at: node.mark, "the id '\(identifier)' is already used in line \(earlier.line)",
        expected: "another id")
    } else {
      identifiers[identifier] = location(node)
    }
  }

  func word<Value: RawRepresentable>(
    _ node: YAMLNode?, _: Value.Type = Value.self
  ) -> Value? where Value.RawValue == String {
    node?.text.flatMap { Value(rawValue: $0) }
  }

  func kinds(_ node: YAMLNode?, standard: Set<ContainerKind>) -> Set<ContainerKind> {
    node == nil ? standard : Set(Self.many(node).compactMap { word($0) })
  }
}

extension DocumentReader {
  func classes(_ node: YAMLNode?) -> [DataClass: PolicyDocument.ClassSettings] {
    var classes: [DataClass: PolicyDocument.ClassSettings] = [:]
    for entry in node?.mapping ?? [] {
      guard let dataClass = DataClass(rawValue: entry.name) else { continue }
      classes[dataClass] = PolicyDocument.ClassSettings(
        settings: settings(entry.value), allowLoss: entry.value["allow-loss"]?.text,
        location: PolicyLocation(file, entry.keyMark))
    }
    return classes
  }

  func containers(_ node: YAMLNode?) -> [ContainerKind: ContainerTerms] {
    var containers: [ContainerKind: ContainerTerms] = [:]
    for entry in node?.mapping ?? [] {
      guard let kind = ContainerKind(rawValue: entry.name) else { continue }
      var terms = ContainerTerms()
      terms.backup = backup(entry.value["backup"])
      terms.update = word(entry.value["update"])
      terms.offload = word(entry.value["offload"])
      terms.uninstall = word(entry.value["uninstall"])
      terms.restoreMissing = word(entry.value["restore-missing"])
      containers[kind] = terms
    }
    return containers
  }

  func retain(_ node: YAMLNode?) -> [RetainedItem: Int64] {
    var retain: [RetainedItem: Int64] = [:]
    for entry in node?.mapping ?? [] {
      guard let item = RetainedItem(rawValue: entry.name) else { continue }
      retain[item] = entry.value.text.flatMap(Quantity.seconds)
    }
    return retain
  }

  mutating func pressure(_ node: YAMLNode?) -> [Pressure] {
    var levels: [Pressure] = []
    for element in node?.sequence ?? [] {
      guard let level: Pressure.Level = word(element["level"]) else { continue }
      if levels.contains(where: { $0.level == level }) {
        add(
          .duplicate, at: element.mark, "the level '\(level.rawValue)' occurs twice",
          expected: "each level once")
      }
      guard let below = freeSpace(element["when-free-below"]),
        let target = freeSpace(element["reclaim-to"]),
        let age = element["min-age"]?.text.flatMap(Quantity.seconds)
      else { continue }
      let orders = element["orders"]?.sequence?.compactMap {
        $0.integer.flatMap { UInt16(exactly: $0) }
      }
      levels.append(
        Pressure(
          level: level, whenFreeBelow: below, reclaimTo: target, orders: Set(orders ?? []),
          minimumAge: age, location: location(element)))
    }
    return levels
  }

  private func freeSpace(_ node: YAMLNode?) -> Pressure.FreeSpace? {
    guard let percent = node?["percent"]?.integer else { return nil }
    return Pressure.FreeSpace(
      percent: Int(percent), atMost: node?["at-most"]?.text.flatMap(Quantity.bytes))
  }

  mutating func quotas(_ node: YAMLNode?) -> [Quota] {
    var quotas: [Quota] = []
    for element in node?.sequence ?? [] {
      guard let match = element["match"], let pattern = pattern(match, ignoringCase: false),
        let size = element["size"]?.text.flatMap(Quantity.bytes)
      else { continue }
      if quotas.contains(where: { $0.pattern.text == pattern.text }) {
        add(
          .duplicate, at: match.mark, "the quota for '\(pattern.text)' occurs twice",
          expected: "each pattern once")
      }
      quotas.append(
        Quota(
          pattern: pattern, kinds: kinds(element["in"], standard: [.data, .extension]), size: size,
          location: location(element)))
    }
    return quotas
  }
}
