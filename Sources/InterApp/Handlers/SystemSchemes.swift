internal import Codecs
package import SystemIO

/// The URL schemes and hosts of `policies/interapp/schemes.yaml`, which belong to the system.
package struct SystemSchemes: Sendable {
  /// The schemes, in lower case.
  package let schemes: [Entry]
  /// The hosts of http and https URLs.
  package let hosts: [Entry]

  /// A scheme or a host, and the app of the system that opens it.
  package struct Entry: Sendable, Hashable {
    /// The scheme or the host, in lower case.
    package let name: ByteString
    /// The prefix of the paths of the host's URLs; empty for all paths.
    package let path: ByteString
    /// The display name of the app.
    package let app: String
    /// The app's bundle identifier.
    package let identifier: ByteString
    /// The first version of the system to which the entry applies, or nil for all.
    let from: SystemVersion?
    /// The first version to which it no longer applies, or nil.
    let until: SystemVersion?
    /// The document that describes it.
    package let source: String

    /// Whether it applies to a version; an unknown version counts as the newest.
    func holds(for version: SystemVersion?) -> Bool {
      guard let version else { return until == nil }
      return (from.map { $0 <= version } ?? true) && (until.map { version < $0 } ?? true)
    }
  }

  /// Reads the file.
  ///
  /// - Throws: `failed` for a mistake, with line and column.
  package init(reading bytes: [UInt8], name: String) throws(OperationError) {
    let file = try DataFile(bytes, name: name, kind: "schemes")
    _ = try file.entries(of: file.root, keys: ["schemes", "schema", "system", "hosts"])
    var (schemes, hosts): ([Entry], [Entry]) = ([], [])
    for node in try file.list(file.root["system"]) {
      let entry = try Self.entry(node, of: "scheme", in: file)
      if let fault = URLText.fault(ofScheme: entry.name) {
        throw file.fault(at: node, "'\(entry.name)' is not a URL scheme: \(fault)")
      }
      schemes.append(entry)
    }
    for node in try file.list(file.root["hosts"]) {
      hosts.append(try Self.entry(node, of: "host", in: file))
    }
    (self.schemes, self.hosts) = (schemes, hosts)
  }

  private static func entry(
    _ node: YAMLNode, of key: String, in file: DataFile
  ) throws(OperationError) -> Entry {
    _ = try file.entries(of: node, keys: [key, "path", "app", "id", "from", "until", "source"])
    return Entry(
      name: ByteString(try file.text(node[key], in: node)).lowercasedASCII,
      path: ByteString(node["path"]?.text ?? ""), app: try file.text(node["app"], in: node),
      identifier: ByteString(try file.text(node["id"], in: node)),
      from: try file.version(node["from"]), until: try file.version(node["until"]),
      source: try file.text(node["source"], in: node))
  }

  /// Returns the entry for a scheme, ignoring case, or nil if apps may handle it.
  package func entry(ofScheme scheme: ByteString, _ version: SystemVersion?) -> Entry? {
    let name = scheme.lowercasedASCII
    return schemes.first { $0.name == name && $0.holds(for: version) }
  }

  /// Returns the entry of the app that opens an http or https URL instead of the browser, or nil.
  package func entry(ofHost host: ByteString, path: ByteString, _ version: SystemVersion?) -> Entry?
  {
    let name = host.lowercasedASCII
    return hosts.first { entry in
      entry.name == name && path.bytes.starts(with: entry.path.bytes) && entry.holds(for: version)
    }
  }
}
