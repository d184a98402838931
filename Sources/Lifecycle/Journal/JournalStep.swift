internal import Codecs
internal import SystemIO

/// One step of an operation: something gets its place, something gives its place up, or both.
///
/// A step can be taken again after an interruption at any point of it. What is to come is either
/// still where it was staged, and then the step is taken; or it is not, and then it has its place.
/// What gives way is kept before anything takes its place.
struct JournalStep: Hashable, Sendable {
  /// The path below each of the roots, plain: no empty component, no `.` and no `..`.
  var path: ByteString
  /// The root below which the place is, by its number among the journal's roots.
  var root = 0
  /// The root below which what gets the place is staged; nothing where nothing is to come.
  var source: Int?
  /// The name under which it is staged, where it is another one: so a container gets another directory by
  /// a step whose staging place is the old one.
  var sourceName: ByteString?
  /// The root below which what gives way is kept; nothing where nothing can stand there.
  var kept: Int?
  /// The name under which it is kept, where it is another one.
  var keptName: ByteString?
  /// The unit that it is of, as a database with its log: neighbouring steps of one unit are taken
  /// all or none. Nothing for a step that stands alone.
  var unit: Int?

  /// The directory's components, and the name in it.
  var directory: [ByteString] { path.components.dropLast() }
  var name: ByteString { path.lastComponent ?? "" }
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

  /// Reads a step; nothing where it is none, or names what is not below its roots.
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
  /// Whether it is the name of one entry.
  fileprivate var isName: Bool { isPlain && components.count == 1 && count <= Int(UInt8.max) }

  /// Whether it is a path that leads nowhere but down.
  fileprivate var isPlain: Bool {
    let parts = components
    let joined = ByteString(parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
    return !parts.isEmpty && !hasNUL && joined == self
      && !parts.contains { $0 == "." || $0 == ".." }
  }
}

extension JSON {
  /// A path or a name as text, and as base64, too, where its bytes are not UTF-8.
  static func members(_ path: ByteString, named name: String) -> [Member] {
    if let text = path.utf8 { return [Member(name, .string(text))] }
    return [
      Member(name, .string(path.description)),
      Member(name + "_b64", .string(Base64.encode(path.bytes))),
    ]
  }

  /// The bytes that `members` wrote.
  func bytes(named name: String) -> ByteString? {
    if let text = self[name + "_b64"]?.string {
      return Base64.decode(text.utf8).map { ByteString($0) }
    }
    return self[name]?.string.map { ByteString($0) }
  }
}
