internal import ArchiveStore
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// The result of `interapp handlers`.
struct HandlersResult {
  /// The thing to open, as given.
  enum Request {
    case type(ByteString)
    case file(ByteString)
    case scheme(ByteString)
    case url(ByteString)
  }

  private let root: ByteString
  private let model: InterAppModel
  private let answer: Answer
  /// The file's type, if a file is given.
  private let file: FileType?

  private enum Answer {
    case type(TypeHandlers)
    case scheme(SchemeHandlers)
  }

  /// Finds the handlers.
  ///
  /// - Throws: `UsageError` for an invalid identifier or scheme, and if the file cannot be read.
  init(_ request: Request, device root: ByteString, _ model: InterAppModel) throws {
    self.root = root
    self.model = model
    let apps = model.catalog.apps
    switch request {
    case .type(let text):
      file = nil
      answer = .type(TypeHandlers(of: try Self.identifier(text), in: model.tree, apps))
    case .file(let path):
      let type = try FileToOpen(path).type(in: model.tree)
      file = type
      answer = .type(
        TypeHandlers(
          of: type.type, filenameExtension: TypeTree.filenameExtension(of: path), in: model.tree,
          apps))
    case .scheme(let text):
      file = nil
      if let fault = URLText.fault(ofScheme: text) {
        throw UsageError(
          .invalidValue, "'\(text)' is not a URL scheme: \(fault)",
          hint: "a scheme is the part of a URL before the colon, for example mailto")
      }
      answer = .scheme(SchemeHandlers(of: text, model.version, in: model.schemes, apps))
    case .url(let text):
      file = nil
      answer = .scheme(
        SchemeHandlers(of: try URLText(reading: text), model.version, in: model.schemes, apps))
    }
  }

  /// Whether an app opens it, even if the platform does not define which.
  var isOpened: Bool {
    switch answer {
    case .type(let handlers): !handlers.handlers.isEmpty
    case .scheme(let handlers): handlers.system != nil || !handlers.apps.isEmpty
    }
  }

  private static func identifier(_ text: ByteString) throws -> TypeIdentifier {
    guard let identifier = TypeIdentifier(text) else {
      throw UsageError(
        .invalidValue,
        "'\(text)' is not a type identifier: \(TypeIdentifier.fault(of: text) ?? "")",
        hint: "an identifier has the form public.png or com.example.document")
    }
    return identifier
  }
}

// MARK: - Text

extension HandlersResult {
  /// Prints the handlers.
  func write(_ console: Console, listsAll: Bool) throws {
    switch answer {
    case .type(let handlers): try write(handlers, console, listsAll: listsAll)
    case .scheme(let handlers): try write(handlers, console, listsAll: listsAll)
    }
  }

  private func write(_ handlers: TypeHandlers, _ console: Console, listsAll: Bool) throws {
    try console.result("type  \(handlers.type)\(origin(of: handlers.type))")
    let above = model.tree.ancestors(of: handlers.type)
    if !above.isEmpty {
      try console.result("  conforms to \(above.map(\.description).joined(separator: ", "))")
    }
    if let file, file.isContradicted, let content = file.content {
      console.warning("the file begins like '\(content)', unlike its extension")
    }
    if handlers.handlers.isEmpty {
      try console.result("no app opens it")
    } else {
      var table = Table([
        ("rank", .left), ("app", .left), ("name", .left), ("document type", .left),
        ("declares", .left),
      ])
      let excerpt = ListExcerpt(handlers.handlers, all: listsAll)
      for handler in excerpt.shown {
        table.add([
          handler.rank.rawValue, handler.app.description, handler.appName?.description ?? "",
          handler.documentType?.description ?? "", handler.match.text,
        ])
      }
      try console.result(table, remainder: excerpt.remainder, indent: "  ")
    }
    for handler in handlers.excluded {
      try console.result("not offered: \(handler.app), with the rank None")
    }
    if let winner = handlers.winner {
      try console.result("opened by \(winner.app)")
    } else if let best = handlers.conflict.first {
      try console.result(
        "conflict: \(Sizes.count(handlers.conflict.count, "app")) with the rank "
          + "\(best.rank.rawValue); the platform defines no winner")
    }
  }

  /// Returns the words about the source of a type, after its identifier.
  private func origin(of type: TypeIdentifier) -> String {
    let basis: String
    switch file?.basis {
    case .filenameExtension: basis = ", by its extension"
    case .content: basis = ", by its content"
    case .kind, nil: basis = ""
    case .some(.none): basis = ", since neither its extension nor its content is known"
    }
    guard let declaration = model.tree.declaration(of: type) else {
      return basis + " (declared by nobody)"
    }
    let app = declaration.origin.app.map { " by \($0)" } ?? ""
    return basis + " (\(declaration.origin.name)\(app))"
  }

  private func write(_ handlers: SchemeHandlers, _ console: Console, listsAll: Bool) throws {
    try console.result("scheme  \(handlers.scheme)")
    if let system = handlers.system {
      try console.result("opened by \(system.app) (\(system.identifier)), an app of the system")
      for app in handlers.apps { try console.result("not asked: \(app.app) (\(app.key))") }
      return
    }
    if handlers.apps.isEmpty { return try console.result("no app opens it") }
    var table = Table([("app", .left), ("name", .left), ("URL type", .left)])
    let excerpt = ListExcerpt(handlers.apps, all: listsAll)
    for app in excerpt.shown {
      table.add([
        app.app.description, app.appName?.description ?? "", app.name?.description ?? app.key,
      ])
    }
    try console.result(table, remainder: excerpt.remainder, indent: "  ")
    if let winner = handlers.winner {
      try console.result("opened by \(winner.app)")
    } else {
      try console.result(
        "conflict: \(Sizes.count(handlers.conflict.count, "app")) with this scheme; the platform "
          + "defines no winner")
    }
  }
}

// MARK: - JSON

extension HandlersResult {
  /// The result as a line of `--json`.
  var json: JSON {
    var members = JSON.path(root, named: "root")
    switch answer {
    case .type(let handlers):
      members += [
        JSON.Member("type", json(of: handlers.type)), JSON.Member("scheme", .null),
        JSON.Member("system", .null),
        JSON.Member("handlers", .array(handlers.handlers.map(\.json))),
        JSON.Member("excluded", .array(handlers.excluded.map(\.json))),
        JSON.Member("conflict", .bool(!handlers.conflict.isEmpty)),
        JSON.Member("opened_by", .text(handlers.winner?.app.bytes)),
      ]
    case .scheme(let handlers):
      members += [
        JSON.Member("type", .null), JSON.Member("scheme", .text(handlers.scheme)),
        JSON.Member("system", handlers.system?.json ?? .null),
        JSON.Member("handlers", .array(handlers.apps.map(\.json))),
        JSON.Member("excluded", .array([])),
        JSON.Member("conflict", .bool(!handlers.conflict.isEmpty)),
        JSON.Member(
          "opened_by", .text(handlers.system?.identifier ?? handlers.winner?.app.bytes)),
      ]
    }
    return .object(members + model.remarks.members)
  }

  private func json(of type: TypeIdentifier) -> JSON {
    let declaration = model.tree.declaration(of: type)
    return [
      "id": .string(type.description),
      "basis": file.map { .string($0.basis.rawValue) } ?? .null,
      "content": file?.content.map { .string($0.description) } ?? .null,
      "contradicted": .bool(file?.isContradicted == true),
      "conforms_to": .array(model.tree.ancestors(of: type).map { .string($0.description) }),
      "origin": declaration.map { .string($0.origin.name) } ?? .null,
      "declared_by": .text(declaration?.origin.app?.bytes),
    ]
  }
}

extension TypeHandlers.Match {
  /// The declaration in a few words.
  fileprivate var text: String {
    switch self {
    case .contentType(let type): type.description
    case .filenameExtension(let name): "extension \(name)"
    case .mimeType(let name): "MIME type \(name)"
    }
  }

  fileprivate var json: JSON {
    switch self {
    case .contentType(let type): ["kind": "type", "value": .string(type.description)]
    case .filenameExtension(let name): ["kind": "extension", "value": .text(name)]
    case .mimeType(let name): ["kind": "mime-type", "value": .text(name)]
    }
  }
}

extension TypeHandlers.Handler {
  fileprivate var json: JSON {
    [
      "app": .string(app.description), "name": .text(appName), "rank": .string(rank.rawValue),
      "role": .text(role), "declaration": .string(key), "declaration_name": .text(documentType),
      "match": match.json, "distance": distance.map { .integer(Int64($0)) } ?? .null,
    ]
  }
}

extension SchemeHandlers.Handler {
  fileprivate var json: JSON {
    [
      "app": .string(app.description), "name": .text(appName), "rank": .null, "role": .text(role),
      "declaration": .string(key), "declaration_name": .text(name), "match": .null,
      "distance": .null,
    ]
  }
}

extension SystemSchemes.Entry {
  /// The app of the system as a member of a result.
  var json: JSON {
    ["app": .text(identifier), "name": .string(app), "source": .string(source)]
  }
}
