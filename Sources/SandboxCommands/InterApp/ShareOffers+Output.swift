internal import ArchiveStore
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

// MARK: - Text

extension ShareOffers {
  /// Prints the items and the decision about each extension.
  func write(_ console: Console, listsAll: Bool) throws {
    var table = Table([("item", .left), ("kind", .left), ("types", .left)])
    let items = ListExcerpt(attachments.all, all: listsAll)
    for item in items.shown {
      table.add([
        item.name.description, item.kind.rawValue,
        item.types.map(\.description).joined(separator: ", "),
      ])
    }
    try console.result(table, remainder: items.remainder)
    try console.result("")
    for kind in Kind.allCases where kind == .share || !offers(of: kind).isEmpty {
      try write(kind, console, listsAll: listsAll)
    }
    for exclusion in exclusions where exclusion.meaning != .extension {
      console.note("'\(exclusion.type)' is \(exclusion.text)")
    }
  }

  /// Prints the decisions about the extensions of a kind.
  private func write(_ kind: Kind, _ console: Console, listsAll: Bool) throws {
    let offers = offers(of: kind)
    guard !offers.isEmpty else {
      return try console.result("no app of the device has a \(kind.name) extension")
    }
    try console.result("\(kind.name) extensions")
    let excerpt = ListExcerpt(
      offers.filter { $0.isOffered } + offers.filter { !$0.isOffered }, all: listsAll)
    for offer in excerpt.shown {
      let item = offer.extension
      let names = [item.name, item.appName].compactMap { $0?.description }
      let name = names.isEmpty ? "" : " (\(names.joined(separator: ", of ")))"
      try console.result("\(offer.result.verdict.text): \(item.identifier)\(name)")
      for reason in offer.result.reasons.prefix(Self.reasonLimit) {
        try console.result("  \(reason)")
      }
      let more = offer.result.reasons.count - Self.reasonLimit
      if more > 0 { try console.result("  and \(Sizes.count(more, "more reason"))") }
    }
    if let remainder = excerpt.remainder { try console.result(remainder) }
  }

  /// The maximum number of reasons that text output shows for an extension.
  private static var reasonLimit: Int { 5 }
}

extension ShareOffers.Offer {
  fileprivate var isOffered: Bool { result.verdict == .offered }
}

extension ActivationResult.Verdict {
  fileprivate var text: String {
    switch self {
    case .offered: "offered"
    case .notOffered: "not offered"
    case .notEvaluated: "not evaluated"
    case .excluded: "excluded"
    }
  }
}

extension ShareOffers.Exclusion {
  fileprivate var text: String {
    switch meaning {
    case .extension: "an extension"
    case .point: "the extension point \(name ?? "")"
    case .activity: "the service \(name ?? "") of the system, not an extension of an app"
    case .unknown: "neither an extension of the device nor a known service of the system"
    }
  }
}

// MARK: - JSON

extension ShareOffers {
  /// The result as a line of `--json`.
  func json(device root: ByteString, _ catalog: ExtensionCatalog) -> JSON {
    .object(
      JSON.path(root, named: "root") + [
        JSON.Member(
          "items",
          .array(
            attachments.all.map { item in
              [
                "name": .text(item.name), "kind": .string(item.kind.rawValue),
                "types": .array(item.types.map { .string($0.description) }),
              ]
            })),
        JSON.Member("offered", .integer(Int64(offered(of: .share).count))),
        JSON.Member("extensions", .array(offers(of: .share).map(\.json))),
        JSON.Member("actions_offered", .integer(Int64(offered(of: .action).count))),
        JSON.Member("actions", .array(offers(of: .action).map(\.json))),
        JSON.Member("exclusions", .array(exclusions.map(\.json))),
      ] + catalog.remarks.members)
  }
}

extension ShareOffers.Offer {
  fileprivate var json: JSON {
    let item = self.extension
    return .object([
      JSON.Member("app", .string(item.app.description)),
      JSON.Member("app_name", .text(item.appName)),
      JSON.Member("id", .string(item.identifier.description)),
      JSON.Member("name", .text(item.name)),
      JSON.Member("point", .text(item.point)),
      JSON.Member("verdict", .string(result.verdict.rawValue)),
      JSON.Member("rule", .string(item.rule.name)),
      JSON.Member("reasons", .array(result.reasons.map { .string($0) })),
      JSON.Member("counts", .array(result.counts.map(\.json))),
      JSON.Member("unmatched", .array(result.unmatched.map { .integer(Int64($0)) })),
      JSON.Member("position", result.fault?.json ?? .null),
    ])
  }
}

extension ActivationDictionary.Count {
  fileprivate var json: JSON {
    [
      "key": .string(key), "count": .integer(Int64(count)),
      "limit": limit.map { .integer(Int64($0)) } ?? .null, "permitted": .bool(isPermitted),
    ]
  }
}

extension PredicateFault {
  fileprivate var json: JSON {
    ["line": .integer(Int64(line)), "column": .integer(Int64(column))]
  }
}

extension ShareOffers.Exclusion {
  fileprivate var json: JSON {
    [
      "type": .text(type), "meaning": .string(meaning.rawValue),
      "name": name.map { .string($0) } ?? .null,
    ]
  }
}
