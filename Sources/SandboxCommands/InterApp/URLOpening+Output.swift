internal import ArchiveStore
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

extension URLOpening {
  /// Whether exactly one app gets the URL.
  var isDefined: Bool {
    switch receiver {
    case .system, .app: true
    case .undefined, .nobody: false
    }
  }

  /// The number of apps in conflict that text output names.
  private static var conflictLimit: Int { 10 }

  /// Prints the receiver, the parts, the calls and the picture.
  func write(_ console: Console) throws {
    try console.result("URL  \(url.withoutPassword)")
    for (name, value) in parts { try console.result("  \(name): \(value)") }
    for item in url.received.queryItems {
      let value = item.value.map { " = \($0)" } ?? ""
      try console.result("  query item: \(item.name)\(value)")
    }
    switch receiver {
    case .system(let entry):
      try console.result("opened by \(entry.app) (\(entry.identifier)), an app of the system")
    case .app(let app): try console.result("opened by \(app), which is \(change)")
    case .undefined(let apps):
      let names = apps.prefix(Self.conflictLimit).map(\.description).joined(separator: ", ")
      let more = apps.count - Self.conflictLimit
      let rest = more > 0 ? " and \(Sizes.count(more, "other app"))" : ""
      try console.result(
        "conflict: \(names)\(rest) declare the scheme; the platform defines no winner")
    case .nobody: try console.result("no app opens it")
    }
    for (number, call) in calls.enumerated() {
      try console.result("  \(number + 1). \(call.selector)")
      for argument in call.arguments { try console.result("       \(argument)") }
      if let onYes = call.onYes { try console.result("       YES: \(onYes)") }
      if let onNo = call.onNo { try console.result("       NO: \(onNo)") }
    }
    if let image { try console.result("shown meanwhile: \(image.text)") }
  }

  /// The change of the app's state in words.
  private var change: String {
    isLaunched ? "launched" : image == .visible ? "running already" : "woken"
  }

  /// The parts that the app receives, with their names. An opaque URL such as `mailto:x@y` has a
  /// resource specifier instead of a host and a path.
  private var parts: [(name: String, value: String)] {
    let received = url.received
    let specifier = url.hidingPassword.received.resourceSpecifier
    let isOpaque = url.authority == nil && !url.path.isAbsolute && !specifier.isEmpty
    let all: [(String, String?)] = [
      ("scheme", url.scheme.description),
      ("resource specifier", isOpaque ? specifier.description : nil),
      ("user", received.user?.description),
      ("password", received.password.map { _ in "(not shown)" }),
      ("host", received.host?.description), ("port", received.port.map(String.init)),
      ("path", received.path?.description), ("parameters", received.parameters?.description),
      ("query", received.query?.description), ("fragment", received.fragment?.description),
    ]
    return all.compactMap { name, value in value.map { (name, $0) } }
  }
}

extension URLOpening {
  /// The result as a line of `--json`.
  func json(device root: ByteString, _ model: InterAppModel) -> JSON {
    let shown = url.hidingPassword
    return .object(
      JSON.path(root, named: "root") + [
        JSON.Member("url", .text(shown.bytes)), JSON.Member("rfc3986", Self.rfc3986(shown)),
        JSON.Member("received", Self.received(shown)), JSON.Member("opened_by", .text(openedBy)),
        JSON.Member("system", handlers.system?.json ?? .null),
        JSON.Member("candidates", .array(handlers.apps.map { .string($0.app.description) })),
        JSON.Member("conflict", .bool(!handlers.conflict.isEmpty)),
        JSON.Member("launched", .bool(isLaunched)),
        JSON.Member("calls", .array(calls.map(\.json))),
        JSON.Member("image", image?.json ?? .null),
        JSON.Member("remarks", .array(url.remarks.map { .string($0) })),
      ] + model.remarks.members)
  }

  private var openedBy: ByteString? {
    switch receiver {
    case .system(let entry): entry.identifier
    case .app(let app): app.bytes
    case .undefined, .nobody: nil
    }
  }

  private static func rfc3986(_ url: URLText) -> JSON {
    [
      "scheme": .text(url.scheme), "authority": .text(url.authority), "path": .text(url.path),
      "query": .text(url.query), "fragment": .text(url.fragment),
    ]
  }

  private static func received(_ url: URLText) -> JSON {
    let parts = url.received
    let items = parts.queryItems.map { item -> JSON in
      ["name": .text(item.name), "value": .text(item.value)]
    }
    return [
      "resource_specifier": .text(parts.resourceSpecifier), "user": .text(parts.user),
      "password": .text(parts.password), "host": .text(parts.host),
      "port": parts.port.map { .integer(Int64($0)) } ?? .null, "path": .text(parts.path),
      "parameters": .text(parts.parameters), "query": .text(parts.query),
      "fragment": .text(parts.fragment), "query_items": .array(items),
    ]
  }
}

extension DelegateCall {
  fileprivate var json: JSON {
    [
      "selector": .string(selector), "passes_url": .bool(passesURL),
      "arguments": .array(arguments.map { .string($0) }),
      "yes": onYes.map { .string($0) } ?? .null, "no": onNo.map { .string($0) } ?? .null,
    ]
  }
}

extension LaunchImage {
  /// The picture in words.
  fileprivate var text: String {
    switch self {
    case .forScheme(let name): "the launch image of the scheme, \(name)"
    case .general(let name): "the launch image \(name)"
    case .storyboard(let name): "the launch storyboard \(name)"
    case .snapshot: "the snapshot taken when the app left the foreground"
    case .visible: "the app itself"
    case .missing: "a black screen: the bundle has no launch image"
    }
  }

  fileprivate var json: JSON {
    let (kind, name): (String, ByteString?) =
      switch self {
      case .forScheme(let name): ("scheme", name)
      case .general(let name): ("general", name)
      case .storyboard(let name): ("storyboard", name)
      case .snapshot: ("snapshot", nil)
      case .visible: ("visible", nil)
      case .missing: ("missing", nil)
      }
    return ["kind": .string(kind), "name": .text(name)]
  }
}
