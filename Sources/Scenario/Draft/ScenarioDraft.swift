internal import PolicyEngine
package import SandboxModel
package import SystemIO

/// A first scenario for a device: that an update, a purge and a restore to a new device keep the
/// data that the platform promises to keep.
///
/// It is derived from the entries of the device, so it passes on the device itself until an app or
/// a policy changes.
package struct ScenarioDraft: Sendable {
  private let root: ByteString
  private let layout: Layout
  /// The parts of each app's data that the platform keeps.
  private let apps: [(identifier: String, parts: [Part])]
  /// The apps with such data that are omitted because a scenario has at most
  /// `ScenarioDocument.maximumPatterns` patterns and `ScenarioDocument.maximumSteps` steps.
  package let omitted: [BundleIdentifier]

  /// A directory of an app's data, or a file.
  fileprivate struct Part: Sendable {
    /// The pattern of its logical path and of the paths below it.
    let pattern: String
    /// The links below it. Their targets change with the container that they lead into.
    var links: [String] = []
  }

  /// The maximum number of links below a part that are named.
  private static let linkLimit = 50
  /// The number of steps with expectations, and of steps other than updates.
  private static let (expectingSteps, otherSteps) = (3, 6)

  /// Creates a draft.
  ///
  /// - Parameters:
  ///   - entries: The entries of the device, by path.
  ///   - apps: The apps that are installed on it.
  package init(
    root: ByteString, layout: Layout, entries: [ScenarioEntry], apps: [BundleIdentifier]
  ) {
    (self.root, self.layout) = (root, layout)
    var (written, omitted): ([(identifier: String, parts: [Part])], [BundleIdentifier]) = ([], [])
    var patterns = 0
    for app in apps.sorted() {
      let data = LogicalContainer.data(LogicalName(app.bytes)).prefix
      let parts = Self.parts(of: data, entries.filter { $0.path.isWithin(data) })
      guard let name = app.bytes.utf8, !parts.isEmpty else { continue }
      let more = Self.expectingSteps * parts.reduce(0) { $0 + 1 + $1.links.count }
      guard patterns + more <= ScenarioDocument.maximumPatterns,
        written.count < ScenarioDocument.maximumSteps - Self.otherSteps
      else {
        omitted.append(app)
        continue
      }
      patterns += more
      written.append((name, parts))
    }
    (self.apps, self.omitted) = (written, omitted)
  }

  /// Whether no app has data that the platform keeps.
  package var isEmpty: Bool { apps.isEmpty }

  /// Returns the parts of a container in which the platform keeps all files: directories of one or
  /// two components, such as `Documents` and `Library/Preferences`.
  private static func parts(of container: ByteString, _ entries: [ScenarioEntry]) -> [Part] {
    var parts: [ByteString: Part] = [:]
    var refused: Set<ByteString> = []
    for entry in entries where entry.kind != .directory {
      let names = entry.path.relative(to: container).components
      let depth = names.first == "Library" ? 2 : 1
      let part = container.appending(ByteString(joining: names.prefix(depth)))
      guard entry.isKept, let pattern = Self.pattern(part) else {
        refused.insert(part)
        continue
      }
      parts[part, default: Part(pattern: pattern + "/**")].addLink(entry)
    }
    return parts.filter { !refused.contains($0.key) && $0.value.links.count <= linkLimit }
      .sorted { $0.key < $1.key }.map(\.value)
  }

  /// Returns a path as a pattern that matches it alone, or nil if it is not UTF-8.
  fileprivate static func pattern(_ path: ByteString) -> String? {
    path.utf8?.unicodeScalars.map(escaped).joined()
  }

  /// Returns a path that is not UTF-8, as a document has to be, as a pattern that matches it and
  /// similar ones: `?` stands for each byte outside ASCII.
  fileprivate static func similar(to path: ByteString) -> String {
    path.bytes.map { $0 < 0x80 ? escaped(Unicode.Scalar($0)) : "?" }.joined()
  }

  /// By scalars: a combining character may follow one that has a special meaning.
  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    "*?[]{}\\,".unicodeScalars.contains(scalar) ? "\\\(scalar)" : "\(scalar)"
  }

  /// The document.
  package var text: String {
    let changes = layout.installer == nil ? apps.map { update($0.identifier) } : []
    return """
      # What has to happen to the data of the apps of a device; see sandboxctl-scenario(5).
      scenario: \(Self.quoted("the data of \(root.lastComponent?.description ?? "a device")"))
      schema: 1
      device: {root: \(Self.quoted(root.utf8 ?? root.description)), layout: \(layout.rawValue)}
      versions: [now]
      steps:
      \((changes + [expectations("an update keeps these"),
        "  - purge: {level: critical}", expectations("so does a lack of space"),
        "  - backup: {name: phone, as: platform}",
        "  - restore: {to: new-device, snapshot: phone}",
        expectations("and a restore to a new device")]).joined(separator: "\n"))

      """
  }

  private func update(_ app: String) -> String {
    "  - update: {app: \(Self.quoted(app)), version: \"9999.0\", strict: true}"
  }

  private func expectations(_ comment: String) -> String {
    let lines = apps.flatMap(\.parts).map { part in
      var line = "      - match: \(Self.quoted(part.pattern))\n        same-bytes: beginning"
      if !part.links.isEmpty {
        line += "\n        except: [\(part.links.map(Self.quoted).joined(separator: ", "))]"
      }
      return line
    }
    return (["  - expect:  # \(comment)"] + lines).joined(separator: "\n")
  }

  /// Returns a text as a double-quoted scalar of YAML 1.2, 7.3.1.
  private static func quoted(_ text: String) -> String {
    let escaped = text.unicodeScalars.map { scalar -> String in
      switch scalar {
      case "\\": return "\\\\"
      case "\"": return "\\\""
      case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
        let digits = String(scalar.value, radix: 16)
        return "\\x" + String(repeating: "0", count: 2 - digits.count) + digits
      default: return String(scalar)
      }
    }
    return "\"\(escaped.joined())\""
  }
}

extension ScenarioDraft.Part {
  /// Adds an entry below the part if it is a link.
  fileprivate mutating func addLink(_ entry: ScenarioEntry) {
    guard entry.kind == .link else { return }
    links.append(ScenarioDraft.pattern(entry.path) ?? ScenarioDraft.similar(to: entry.path))
  }
}

extension ScenarioEntry {
  /// Whether the platform keeps the entry in an update, a purge and a backup.
  fileprivate var isKept: Bool {
    let verdict = verdicts.platform
    return verdict.backup.mode(for: Destination(isUnencrypted: true)) == .always
      && verdict.update == .preserve && verdict.purge == .never && verdict.restore == .restore
  }
}
