internal import Codecs
package import SystemIO

/// One step of an operation: it moves an entry to its place, moves the present entry away, or does
/// both.
///
/// A step can be repeated after an interruption at any point. If the new entry is still staged, the
/// step has to be applied; otherwise the step has already been applied. The present entry is
/// preserved before anything replaces it.
package struct JournalStep: Hashable, Sendable {
  /// The path relative to each of the roots, normalized: no empty component, no `.` and no `..`.
  package var path: ByteString
  /// The root of the destination, by its index among the journal's roots.
  package var root = 0
  /// The root of the staged entry, or nil if the step adds nothing.
  package var source: Int?
  /// The staged entry's name, if it differs. To move a container to another directory, the source
  /// of the step is the old directory.
  var sourceName: ByteString?
  /// The root at which the replaced entry is kept, or nil if there can be none.
  package var kept: Int?
  /// The kept entry's name, if it differs.
  package var keptName: ByteString?
  /// The unit that the step belongs to, for example a database with its log. All neighboring steps
  /// of a unit are applied or none. Nil for a single step.
  package var unit: Int?

  /// Creates the value from its parts.
  package init(
    path: ByteString, root: Int = 0, source: Int? = nil, sourceName: ByteString? = nil,
    kept: Int? = nil, keptName: ByteString? = nil, unit: Int? = nil
  ) {
    self.path = path
    self.root = root
    self.source = source
    self.sourceName = sourceName
    self.kept = kept
    self.keptName = keptName
    self.unit = unit
  }

  /// The reason for a file that is not restored because another file of its unit, a database, is
  /// not.
  package static let brokenUnitReason = "a file of the same database could not be restored"

  /// The components of the directory.
  var directory: [ByteString] { path.components.dropLast() }
  package var name: ByteString { path.lastComponent ?? "" }
}

extension JournalStep {
  var json: JSON {
    var members = JSON.members(path, named: "path")
    members.append(JSON.Member("in", .integer(Int64(root))))
    if let source { members.append(JSON.Member("from", .integer(Int64(source)))) }
    if let sourceName { members += JSON.members(sourceName, named: "from_name") }
    if let kept { members.append(JSON.Member("keep", .integer(Int64(kept)))) }
    if let keptName { members += JSON.members(keptName, named: "as") }
    if let unit { members.append(JSON.Member("unit", .integer(Int64(unit)))) }
    return .object(members)
  }

  /// Parses a step, or returns nil if it is malformed or names a path outside its roots.
  init?(_ json: JSON, roots: Int) {
    guard let path = json.bytes(named: "path"), path.isPlain, !path.isAbsolute,
      let root = json["in"]?.integer.flatMap({ Int(exactly: $0) })
    else { return nil }
    let source = json["from"]?.integer.flatMap { Int(exactly: $0) }
    let kept = json["keep"]?.integer.flatMap { Int(exactly: $0) }
    let name = json.bytes(named: "as")
    let sourceName = json.bytes(named: "from_name")
    let unit = json["unit"]?.integer.flatMap { Int(exactly: $0) }
    let numbers = [root, source ?? 0, kept ?? 0]
    guard numbers.allSatisfy({ (0..<roots).contains($0) }), source != nil || kept != nil,
      (source == nil) == (json["from"] == nil), (kept == nil) == (json["keep"] == nil),
      (unit == nil) == (json["unit"] == nil), (0...Int(Int32.max)).contains(unit ?? 0),
      [name, sourceName].allSatisfy({ $0.map(\.isName) ?? true }),
      source != nil || sourceName == nil
    else { return nil }
    self.init(
      path: path, root: root, source: source, sourceName: sourceName, kept: kept, keptName: name,
      unit: unit)
  }
}

extension ByteString {
  /// Whether the string is a valid name of one entry.
  fileprivate var isName: Bool { isPlain && components.count == 1 && count <= Int(UInt8.max) }

  /// Whether the string is a normalized path that only descends.
  fileprivate var isPlain: Bool {
    let parts = components
    let joined = ByteString(joining: parts)
    return !parts.isEmpty && !hasNUL && joined == self
      && !parts.contains { $0 == "." || $0 == ".." }
  }
}

extension JSON {
  /// Returns the members for a path or name: text, and additionally base64 if the bytes are not
  /// UTF-8.
  static func members(_ path: ByteString, named name: String) -> [Member] {
    if let text = path.utf8 { return [Member(name, .string(text))] }
    return [
      Member(name, .string(path.description)),
      Member(name + "_b64", .string(Base64.encode(path.bytes))),
    ]
  }

  /// Returns the bytes that `members` wrote, or nil if they are missing.
  func bytes(named name: String) -> ByteString? {
    if let text = self[name + "_b64"]?.string {
      return Base64.decode(text.utf8).map { ByteString($0) }
    }
    return self[name]?.string.map { ByteString($0) }
  }
}
