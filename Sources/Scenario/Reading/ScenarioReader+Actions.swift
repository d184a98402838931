internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension ScenarioReader {
  /// Returns the action that an entry of a step describes.
  mutating func action(_ entry: YAMLNode.Entry) -> ScenarioAction? {
    let node = entry.value
    switch ScenarioAction.Kind(rawValue: entry.name) {
    case .deliver: return delivery(node)
    case .write: return write(node)
    case .remove: return path(node).map { .remove($0) }
    case .mark: return mark(node)
    case .backup: return backup(node)
    case .update: return update(node)
    case .rollback:
      let data = node["data"]?.text.flatMap { ScenarioAction.Rollback.Data(rawValue: $0) }
      return text(node["app"]).map { .rollback(.init(app: $0, data: data)) }
    case .purge:
      if let level = node["level"]?.text.flatMap({ Pressure.Level(rawValue: $0) }) {
        return .purge(.level(level))
      }
      return node["free"]?.text.flatMap { Quantity.bytes($0) }.map {
        .purge(.free(Int64(clamping: $0)))
      }
    case .offload: return text(node["app"]).map { .offload(app: $0) }
    case .restore: return restore(node)
    case .interrupt: return interrupt(node)
    case .recover: return .recover
    case .moment:
      guard let name = node.text else { return nil }
      moments.insert(name)
      return .moment(name)
    case .expect: return .expect((node.sequence ?? []).compactMap { expectation($0) })
    case nil: return nil
    }
  }

  private func text(_ node: YAMLNode?) -> ByteString? { node?.text.map { ByteString($0) } }

  private mutating func content(_ node: YAMLNode) -> ScenarioContent? {
    if let text = node["text"]?.text { return .text(text) }
    if let path = text(node["file"]) { return .file(path) }
    guard let size = node["size"], let bytes = size.text.flatMap({ Quantity.bytes($0) }) else {
      return nil
    }
    guard bytes <= ScenarioDocument.maximumContent else {
      add(
        .value, at: size.mark, "the file would be too large",
        expected: "at most \(ScenarioDocument.maximumContent >> 20)MiB")
      return nil
    }
    return .size(Int64(bytes))
  }

  private mutating func delivery(_ node: YAMLNode) -> ScenarioAction? {
    guard let app = text(node["app"]), let content = content(node) else { return nil }
    let name = text(node["name"])
    if let name, let fault = name.nameFault, let mark = node["name"]?.mark {
      add(.value, at: mark, "the name is invalid: \(fault)", expected: "the name of a file")
    }
    return .deliver(.init(app: app, name: name, content: content))
  }

  private mutating func write(_ node: YAMLNode) -> ScenarioAction? {
    guard let path = path(node["path"]), let content = content(node) else { return nil }
    var mode: UInt32?
    if let words = node["mode"], let text = words.text {
      mode = UInt32(text, radix: 8)
      if mode.map({ $0 > 0o777 }) ?? true {
        add(
          .value, at: words.mark, "'\(ByteString(text))' is not a mode",
          expected: "three octal digits, for example 644")
      }
    }
    return .write(.init(path: path, content: content, mode: mode))
  }

  private mutating func mark(_ node: YAMLNode) -> ScenarioAction? {
    let isExcluded = node["as"]?.text != "include"
    return path(node["path"]).map {
      .mark(.init(path: $0, isExcluded: isExcluded, attribute: text(node["attribute"])))
    }
  }

  private mutating func backup(_ node: YAMLNode) -> ScenarioAction? {
    let name = node["name"]?.text
    if let name, let mark = node["name"]?.mark {
      if !backups.insert(name).inserted {
        add(.duplicate, at: mark, "there is a backup of this name", expected: "another name")
      }
      moments.insert(name)
    }
    let view = node["as"]?.text.flatMap { Verdicts.View(rawValue: $0) } ?? .platform
    return .backup(.init(name: name, view: view))
  }

  private func update(_ node: YAMLNode) -> ScenarioAction? {
    guard let app = text(node["app"]) else { return nil }
    let isStrict = node["strict"]?.bool ?? false
    if let version = node["version"]?.text {
      return .update(.init(app: app, source: .version(version), isStrict: isStrict))
    }
    return text(node["package"]).map {
      .update(.init(app: app, source: .package($0), isStrict: isStrict))
    }
  }

  private mutating func restore(_ node: YAMLNode) -> ScenarioAction? {
    let target = node["to"]?.text.flatMap { ScenarioAction.Restore.Target(rawValue: $0) }
    guard let target else { return nil }
    let name = node["snapshot"]?.text
    if let name, !backups.contains(name), let mark = node["snapshot"]?.mark {
      add(
        .value, at: mark, "no earlier step makes a backup '\(ByteString(name))'",
        expected: "the name of a backup")
    }
    return .restore(.init(target: target, snapshot: name, app: text(node["app"])))
  }

  private mutating func interrupt(_ node: YAMLNode) -> ScenarioAction? {
    guard let entry = action(in: node["step"]), let action = action(entry),
      let count = node["at"]?.integer
    else { return nil }
    let words = node["of"]?.text.flatMap { ScenarioAction.Interruption.Unit(rawValue: $0) }
    let unit = words ?? .phase
    if unit == .phase, !action.kind.hasPhases, let mark = (node["of"] ?? node["at"])?.mark {
      add(
        .value, at: mark, "a \(action.kind.rawValue) has no phases",
        expected: "'of: call' beside 'at', to count its system calls")
    }
    return .interrupt(
      .init(
        action: action, count: Int(clamping: count), unit: unit,
        recovers: node["recover"]?.bool ?? true))
  }

  // MARK: - Expectations

  private mutating func expectation(_ node: YAMLNode) -> ScenarioExpectation? {
    let (matches, exceptions) = (patterns(node["match"]), patterns(node["except"]))
    var assertions: [ScenarioExpectation.Located] = []
    for entry in node.mapping ?? [] {
      guard let assertion = assertion(entry) else { continue }
      assertions.append(
        .init(assertion: assertion, location: PolicyLocation(file, entry.keyMark)))
    }
    guard !matches.isEmpty, !assertions.isEmpty else { return nil }
    return ScenarioExpectation(
      patterns: matches, exceptions: exceptions, assertions: assertions,
      versions: range(node["versions"]), location: location(node))
  }

  private mutating func assertion(
    _ entry: YAMLNode.Entry
  ) -> ScenarioExpectation.Assertion? {
    let node = entry.value
    switch entry.name {
    case "exists": return node.bool.map { $0 ? .exists : .absent }
    case "same-bytes": return moment(node).map { .sameBytes(as: $0) }
    case "survived": return moment(node).map { .survived(since: $0) }
    case "vanished": return moment(node).map { .vanished(since: $0) }
    case "class": return node.text.flatMap { DataClass(rawValue: $0) }.map { .dataClass($0) }
    case "keep": return .verdict(.keep, values(node))
    case "platform": return .verdict(.platform, values(node))
    case "mark":
      switch node.text {
      case "excluded": return .mark(.excluded)
      case "none": return .mark(.none)
      case let name?: return .mark(.attribute(ByteString(name)))
      case nil: return nil
      }
    default: return nil
    }
  }

  private mutating func moment(_ node: YAMLNode) -> String? {
    guard let name = node.text else { return nil }
    if !moments.contains(name) {
      add(
        .value, at: node.mark, "no earlier step names the moment '\(ByteString(name))'",
        expected: "'beginning', or the name of an earlier moment or backup")
    }
    return name
  }

  private func values(_ node: YAMLNode) -> ScenarioExpectation.Values {
    ScenarioExpectation.Values(
      dataClass: node["class"]?.text.flatMap { DataClass(rawValue: $0) },
      backup: node["backup"]?.text.flatMap { BackupDisposition.Mode(rawValue: $0) },
      update: node["update"]?.text.flatMap { UpdateDisposition(rawValue: $0) },
      purge: node["purge"]?.text.flatMap { ScenarioExpectation.Values.Purge(rawValue: $0) },
      restore: node["restore"]?.text.flatMap { RestoreDisposition(rawValue: $0) })
  }
}
