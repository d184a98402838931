// The property list container-migration.plist of a macOS app, `Contents/Resources`:
//
//   Move      array; each a path, or an array of two: from where and to where
//   Symlink   array of paths
//
// A path begins with a variable that names a directory of a home; ${BundleId} may stand anywhere. What
// names no such variable, leaves its directory, is a whole directory of the user's, or lies in containers
// is refused, and with it the whole list: a migration by half would lose what belongs together.
internal import SystemIO

extension ContainerMigration {
  private static let attempt = "read the container's migration"

  /// Reads the bytes of a container-migration.plist.
  ///
  /// - Throws: `propertyList` or `limit` for bytes that are no property list, `package` for one that
  ///   says what no migration may.
  public init(reading bytes: [UInt8], for app: BundleIdentifier) throws(ModelError) {
    let list = try PropertyList(reading: bytes, limits: .init(bytes: 1 << 20, objects: 100_000))
    guard list.dictionaryValue != nil else {
      throw Self.fault("it is a property list of the type \(list.kind), not a dictionary")
    }
    let reader = MigrationPath(app: app)
    var moves: [Move] = []
    for value in try Self.array("Move", of: list) { moves.append(try Self.move(value, reader)) }
    var links: [ByteString] = []
    for value in try Self.array("Symlink", of: list) {
      guard let text = value.stringValue else {
        throw Self.fault("Symlink has an element of the type \(value.kind), not string")
      }
      links.append(try reader.path(text))
    }
    self.init(moves: moves, links: links)
    try check()
  }

  private static func array(
    _ key: ByteString, of list: PropertyList
  ) throws(ModelError) -> [PropertyList] {
    guard let value = list[key] else { return [] }
    guard let elements = value.arrayValue else {
      throw fault("\(key) has the type \(value.kind), not array")
    }
    return elements
  }

  private static func move(
    _ value: PropertyList, _ reader: MigrationPath
  ) throws(ModelError) -> Move {
    if let text = value.stringValue {
      let path = try reader.path(text)
      return Move(source: path, destination: path)
    }
    guard let pair = value.arrayValue, pair.count == 2, let source = pair[0].stringValue,
      let destination = pair[1].stringValue
    else { throw fault("Move has an element that is neither a path nor a pair of paths") }
    return Move(source: try reader.path(source), destination: try reader.path(destination))
  }

  /// Refuses two that meet: which one came first would decide what is lost.
  private func check() throws(ModelError) {
    try Self.refuseMeeting(moves.map(\.source) + links, "takes")
    try Self.refuseMeeting(moves.map(\.destination) + links, "makes")
  }

  private static func refuseMeeting(_ paths: [ByteString], _ verb: String) throws(ModelError) {
    // Below a path come first those within it, when slashes sort before all other bytes.
    let sorted = paths.map { ($0, $0.components) }.sorted {
      $0.1.lexicographicallyPrecedes($1.1)
    }
    for (one, next) in zip(sorted, sorted.dropFirst()) where next.0.isWithin(one.0) {
      throw fault("it \(verb) '\(next.0)' twice, or as a part of '\(one.0)'")
    }
  }

  static func fault(_ reason: String) -> ModelError { ModelError(.package, attempt, reason) }
}

/// Reads the paths of a migration.
struct MigrationPath {
  let app: BundleIdentifier

  /// The directories of a home that variables name.
  private static let directories: [ByteString: ByteString] = [
    "ApplicationSupport": "Library/Application Support",
    "AutosavedInformation": "Library/Autosave Information",
    "Caches": "Library/Caches",
    "Documents": "Documents",
    "Home": "",
    "Library": "Library",
  ]
  /// Whole directories that belong to no one app, and what is a container's already.
  private static let refused: [ByteString] = ["Library/Containers", "Library/Group Containers"]

  /// A path relative to a home, with its variables replaced.
  func path(_ text: ByteString) throws(ModelError) -> ByteString {
    let parts = text.bytes.split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
    ).map { ByteString($0) }
    guard let first = parts.first, let variable = Self.variable(first),
      let directory = Self.directories[variable]
    else {
      throw fault(text, "does not begin with a variable that names a directory, as ${Library} does")
    }
    var path = directory
    for part in parts.dropFirst() { path = path.appending(try component(part, of: text)) }
    if path == directory || Self.directories.values.contains(path) {
      throw fault(text, "is a whole directory of the user's, and not the app's alone")
    }
    if Self.refused.contains(where: { path.isWithin($0) }) {
      throw fault(text, "lies in containers, which no migration may touch")
    }
    return path
  }

  /// The name of `${name}`; nil for anything else.
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
    if Self.holdsVariable(name) { throw fault(text, "has a variable that is not known there") }
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
