internal import Codecs
internal import SandboxModel

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
      guard let level: PressureLevel = word(element["level"]) else { continue }
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

  private func freeSpace(_ node: YAMLNode?) -> FreeSpace? {
    guard let percent = node?["percent"]?.integer else { return nil }
    return FreeSpace(
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
