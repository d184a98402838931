internal import Codecs
internal import SystemIO

extension Configuration {
  /// Sets options at the top of the user's configuration file, before the first key, and preserves
  /// all other bytes.
  ///
  /// An option that is already set is not changed, nor is a file whose format does not allow adding
  /// a line. The caller then tells the user what to write.
  struct Edit {
    /// The result of an edit.
    enum Outcome {
      /// The line was written.
      case written(ByteString)
      /// The file already has the setting.
      case present(ByteString)
      /// The file has another value at this location.
      case otherwise(location: String, value: String)
      /// Nothing was written, for this reason.
      case refused(file: ByteString, reason: String)
    }

    /// A key and its value in YAML.
    struct Line {
      let name: String
      let value: String
      /// The value without quotes.
      let text: String

      init(flag name: String) { (self.name, value, text) = (name, "true", "true") }

      init(_ name: String, path: String) {
        self.name = name
        text = path
        let isPlain = path.utf8.allSatisfy { byte in
          UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
            || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "/._-".utf8.contains(byte)
        }
        // Double-quoted scalars of YAML accept JSON's escapes.
        value = isPlain ? path : JSON.string(path).compact
      }

      var bytes: [UInt8] { Array("\(name): \(value)\n".utf8) }
    }

    private let path: ByteString
    private let program: KnownCommand

    /// Creates an edit of the user's file; nil if the environment names no directory for it.
    init?(program: KnownCommand) {
      guard let path = Configuration.path else { return nil }
      // Resolved, to write to the target of a symbolic link instead of replacing it.
      self.path = (try? Host.realPath(path)) ?? path
      self.program = program
    }

    /// Sets an option for all commands.
    func set(_ line: Line) throws -> Outcome {
      guard let old = try Configuration.text(at: path) else {
        try write(Array(Self.head.utf8) + line.bytes, permissions: 0o600)
        return .written(path)
      }
      let root = old.allSatisfy { $0 == UInt8(ascii: "\n") } ? nil : try? YAML.parse(old)
      if let value = root?[line.name] {
        if value.text == line.text { return .present(path) }
        return .otherwise(location: "\(path):\(value.mark)", value: value.text ?? value.kindName)
      }
      guard let new = Self.text(old, root, with: line) else {
        return .refused(file: path, reason: "its format does not allow adding a line")
      }
      guard try isOnlyMore(new, than: old) else {
        return .refused(file: path, reason: "another line would change the meaning of the others")
      }
      try write(new, permissions: nil)
      return .written(path)
    }

    /// Returns the text with the line before its first key, or at its end if it has none; nil if
    /// that is not possible.
    private static func text(_ old: [UInt8], _ root: YAMLNode?, with line: Line) -> [UInt8]? {
      guard let root, !root.isNull else {
        let separator = old.isEmpty || old.last == UInt8(ascii: "\n") ? [] : [UInt8(ascii: "\n")]
        return old + separator + line.bytes
      }
      guard let first = root.mapping?.first?.keyMark, first.column == 1 else { return nil }
      var start = 0
      for _ in 1..<first.line {
        guard let end = old[start...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        start = end + 1
      }
      return old[..<start] + line.bytes + old[start...]
    }

    /// Whether the new text has all settings of the old one and exactly one more.
    private func isOnlyMore(_ new: [UInt8], than old: [UInt8]) throws -> Bool {
      let before = try Configuration(old, at: path, for: program, running: nil)
      guard let after = try? Configuration(new, at: path, for: program, running: nil) else {
        return false
      }
      func words(_ settings: some Sequence<Configuration.Setting>) -> [String] {
        settings.map { "\($0.command) \($0.name) \($0.value)" }.sorted()
      }
      let profiles = after.profiles.mapValues { words($0) }
      guard profiles == before.profiles.mapValues({ words($0) }) else { return false }
      var rest = words(after.settings)
      for word in words(before.settings) {
        guard let index = rest.firstIndex(of: word) else { return false }
        rest.remove(at: index)
      }
      return rest.count == 1
    }

    private func write(_ bytes: [UInt8], permissions: UInt16?) throws {
      guard let name = path.lastComponent else { return }
      let above = path.components.dropLast().reduce(ByteString("/")) { $0.appending($1) }
      let directory = try Directory.make(path: above, permissions: 0o700)
      let mode = try permissions ?? directory.status(name).permissions
      try AtomicFile.write(bytes, as: name, in: directory, permissions: mode)
    }

    private static let head = """
      # Default options of sandboxctl, which the command line overrides.
      # 'man sandboxctl-config' describes this file.

      """
  }
}
