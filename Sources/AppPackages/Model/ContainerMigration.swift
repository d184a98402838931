// The property list container-migration.plist of a macOS app, `Contents/Resources`:
//
//   Move      array; each element a path, or an array of two: source and destination
//   Symlink   array of paths
//
// A path begins with a variable that names a directory in the home directory; ${BundleId} can occur
// anywhere. If a path lacks such a variable, leaves its directory, is a complete directory of the
// user, or is in containers, the whole list is refused: a partial migration would separate data
// that belongs together.
internal import Codecs
package import SandboxModel
package import SystemIO

/// The data that an app's container-migration.plist moves into its container when it is first
/// created.
///
/// All paths are relative, in the form of `PackageEntry.path`, with their variables replaced.
/// Sources are relative to the user's home directory, destinations to the container's `Data`.
/// Source: App Sandbox Design Guide, Migrating an App to a Sandbox.
package struct ContainerMigration: Hashable, Sendable {
  /// The moves, in the order of the list.
  package let moves: [Move]
  /// The paths that stay in place, with a link to them in the container.
  package let links: [ByteString]

  /// A move from the home directory into the container.
  package struct Move: Hashable, Sendable {
    /// The source, relative to the user's home directory.
    package let source: ByteString
    /// The destination, relative to the container's `Data`.
    package let destination: ByteString

    /// Creates a move with paths that the caller has checked.
    package init(source: ByteString, destination: ByteString) {
      self.source = source
      self.destination = destination
    }
  }

  /// Creates a migration with paths that the caller has checked.
  package init(moves: [Move] = [], links: [ByteString] = []) {
    self.moves = moves
    self.links = links
  }
}

// MARK: - Reading

extension ContainerMigration {
  private static let action = "read the container migration"

  /// Parses a container-migration.plist.
  ///
  /// - Throws: `propertyList` or `limit` for an invalid property list, `package` for an invalid
  ///   migration.
  package init(reading bytes: [UInt8], for app: BundleIdentifier) throws(ModelError) {
    let list: PropertyList
    do {
      list = try PropertyList(reading: bytes, limits: .init(bytes: 1 << 20, objects: 100_000))
    } catch {
      throw ModelError(reading: error)
    }
    guard list.dictionaryValue != nil else {
      throw Self.fault("it is a property list of the type \(list.kind), not a dictionary")
    }
    let reader = PathReader(app: app)
    var moves: [Move] = []
    for value in try Self.array("Move", of: list) { moves.append(try Self.move(value, reader)) }
    var links: [ByteString] = []
    for value in try Self.array("Symlink", of: list) {
      guard let text = value.stringValue else {
        throw Self.fault("Symlink has an element of the type \(value.kind), not string")
      }
      links.append(try reader.path(ByteString(text)))
    }
    self.init(moves: moves, links: links)
    try check()
  }

  private static func array(
    _ key: String, of list: PropertyList
  ) throws(ModelError) -> [PropertyList] {
    guard let value = list[key] else { return [] }
    guard let elements = value.arrayValue else {
      throw fault("\(key) has the type \(value.kind), not array")
    }
    return elements
  }

  private static func move(
    _ value: PropertyList, _ reader: PathReader
  ) throws(ModelError) -> Move {
    if let text = value.stringValue {
      let path = try reader.path(ByteString(text))
      return Move(source: path, destination: path)
    }
    guard let pair = value.arrayValue, pair.count == 2, let source = pair[0].stringValue,
      let destination = pair[1].stringValue
    else { throw fault("Move has an element that is neither a path nor a pair of paths") }
    return Move(
      source: try reader.path(ByteString(source)),
      destination: try reader.path(ByteString(destination)))
  }

  /// Refuses overlapping paths: the data lost would depend on their order.
  private func check() throws(ModelError) {
    try Self.refuseOverlaps(moves.map(\.source) + links, "uses")
    try Self.refuseOverlaps(moves.map(\.destination) + links, "creates")
  }

  private static func refuseOverlaps(_ paths: [ByteString], _ verb: String) throws(ModelError) {
    // Sorted by components, a path directly precedes the paths within it.
    let sorted = paths.map { ($0, $0.components) }.sorted {
      $0.1.lexicographicallyPrecedes($1.1)
    }
    for (one, next) in zip(sorted, sorted.dropFirst()) where next.0.isWithin(one.0) {
      throw fault("it \(verb) '\(next.0)' twice, or as part of '\(one.0)'")
    }
  }

  private static func fault(_ reason: String) -> ModelError {
    ModelError(.package, action, reason: reason)
  }
}

extension ContainerMigration {
  /// Resolves the paths of a migration.
  private struct PathReader {
    let app: BundleIdentifier

    /// The directories in the home directory, by variable.
    private static let directories: [ByteString: ByteString] = [
      "ApplicationSupport": "Library/Application Support",
      "AutosavedInformation": "Library/Autosave Information",
      "Caches": "Library/Caches",
      "Documents": "Documents",
      "Home": "",
      "Library": "Library",
    ]
    /// Directories that are shared by apps or belong to containers.
    private static let refused: [ByteString] = ["Library/Containers", "Library/Group Containers"]

    /// Returns a path relative to the home directory, with its variables replaced.
    func path(_ text: ByteString) throws(ModelError) -> ByteString {
      let parts = text.bytes.split(
        separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
      ).map { ByteString($0) }
      guard let first = parts.first, let variable = Self.variable(first),
        let directory = Self.directories[variable]
      else {
        throw fault(text, "does not begin with a directory variable such as ${Library}")
      }
      var path = directory
      for part in parts.dropFirst() { path = path.appending(try component(part, of: text)) }
      if path == directory || Self.directories.values.contains(path) {
        throw fault(text, "is a complete directory of the user and not specific to the app")
      }
      if Self.refused.contains(where: { path.isWithin($0) }) {
        throw fault(text, "is inside the containers, where migrations are not permitted")
      }
      return path
    }

    /// Returns the name in `${name}`, or nil for any other text.
    private static func variable(_ part: ByteString) -> ByteString? {
      guard part.bytes.starts(with: "${".utf8), part.bytes.last == UInt8(ascii: "}") else {
        return nil
      }
      return ByteString(part.bytes.dropFirst(2).dropLast())
    }

    private func component(
      _ part: ByteString, of text: ByteString
    ) throws(ModelError) -> ByteString {
      let name = ByteString(replacing(part))
      if name.isEmpty || name == "." || name == ".." || name.hasNUL {
        throw fault(text, "has an empty component, '.', '..' or a NUL")
      }
      if name.bytes.contains(UInt8(ascii: "/")) { throw fault(text, "names another directory") }
      if name.count > 255 { throw fault(text, "has a name of more than 255 bytes") }
      if Self.holdsVariable(name) { throw fault(text, "has an unknown variable") }
      return name
    }

    private static func holdsVariable(_ name: ByteString) -> Bool {
      zip(name.bytes, name.bytes.dropFirst()).contains {
        $0 == UInt8(ascii: "$") && $1 == UInt8(ascii: "{")
      }
    }

    private func replacing(_ part: ByteString) -> [UInt8] {
      let wanted = Array("${BundleId}".utf8)
      var (rest, result): (ArraySlice<UInt8>, [UInt8]) = (part.bytes, [])
      while let byte = rest.first {
        if rest.starts(with: wanted) {
          result += app.bytes.bytes
          rest = rest.dropFirst(wanted.count)
        } else {
          result.append(byte)
          rest = rest.dropFirst()
        }
      }
      return result
    }

    private func fault(_ text: ByteString, _ reason: String) -> ModelError {
      ContainerMigration.fault("the path '\(text)' \(reason)")
    }
  }
}
