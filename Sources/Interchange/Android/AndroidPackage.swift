internal import Codecs
package import SystemIO

/// The rules of Auto Backup in an app's package (APK): its manifest names them by a number in the
/// table of resources, which has the path of a file in the package.
package struct AndroidPackage: Sendable {
  /// The app's package name.
  package let name: ByteString
  package let rules: AutoBackupRules
  /// Whether Android stores the output of the app's own code instead of its files.
  package let isKeyValueOnly: Bool

  static let action = "read the rules of the Android package"
  private static let manifest: ByteString = "AndroidManifest.xml"
  private static let table: ByteString = "resources.arsc"
  /// The maximum number of members that are searched for these files.
  private static let memberLimit = 2_000_000

  /// Reads a package in a file, which is searched twice.
  ///
  /// - Throws: `unknownFormat` if it is not a zip archive with the manifest of an app; `damaged`,
  ///   also if the rules that the manifest names are missing or refused by Android;
  ///   `limitExceeded`.
  package init(_ file: ArchiveFile) throws(InterchangeError) {
    try file.requireRereadable(to: Self.action)
    let found = try Self.members([Self.manifest, Self.table], of: file)
    guard let text = found[Self.manifest] else {
      throw InterchangeError(
        .unknownFormat, Self.action, subject: file.name,
        reason: "it has no '\(Self.manifest)', so it is not the package of an app")
    }
    let manifest = try Self.parsing(Self.manifest, of: file) { () throws(CodecError) in
      try AndroidAppManifest(text)
    }
    let resources = Resources(file: file, bytes: found[Self.table])
    name = ByteString(manifest.package)
    let isFullBackupOnly = try resources.flag(manifest.fullBackupOnly, default: false)
    isKeyValueOnly = manifest.hasAgent && !isFullBackupOnly
    rules = try Self.rules(of: manifest, resources, file)
  }

  private static func rules(
    of manifest: AndroidAppManifest, _ resources: Resources, _ file: ArchiveFile
  ) throws(InterchangeError) -> AutoBackupRules {
    var rules = AutoBackupRules(
      allowsBackup: try resources.flag(manifest.allowBackup, default: true),
      targetVersion: manifest.targetVersion ?? 1)
    let content = try resources.file(manifest.fullBackupContent)
    let extraction = try resources.file(manifest.dataExtractionRules)
    let paths = [content, extraction].compactMap(\.self)
    let files = paths.isEmpty ? [:] : try members(Set(paths), of: file)
    if let content {
      let bytes = try member(content, in: files, of: file)
      let section = try parsing(content, of: file) { () throws(CodecError) in
        try AutoBackupRules.Section(fullBackupContent: bytes)
      }
      rules.fullBackup = .rules(section)
    } else if try !resources.flag(manifest.fullBackupContent, default: true) {
      rules.fullBackup = .disabled
    }
    if let extraction {
      let bytes = try member(extraction, in: files, of: file)
      rules.extraction = try parsing(extraction, of: file) { () throws(CodecError) in
        try AutoBackupRules.DataExtraction(bytes)
      }
    }
    return rules
  }

  private static func member(
    _ path: ByteString, in files: [ByteString: [UInt8]], of file: ArchiveFile
  ) throws(InterchangeError) -> [UInt8] {
    if let bytes = files[path] { return bytes }
    throw InterchangeError(
      .damaged, action, subject: file.name, reason: "its manifest names '\(path)', which it lacks")
  }

  /// Runs the reading of a member. The error names the member.
  fileprivate static func parsing<Result>(
    _ path: ByteString, of file: ArchiveFile, _ body: () throws(CodecError) -> Result
  ) throws(InterchangeError) -> Result {
    do throws(CodecError) { return try body() } catch {
      let plain = InterchangeError(error, action, subject: file.name)
      throw InterchangeError(
        plain.kind == .unknownFormat ? .unsupported : plain.kind, action, subject: file.name,
        reason: "'\(path)': \(error.reason)", offset: plain.offset)
    }
  }

  // MARK: - Members

  /// Returns the content of the members with the given paths that the package has.
  private static func members(
    _ paths: Set<ByteString>, of file: ArchiveFile
  ) throws(InterchangeError) -> [ByteString: [UInt8]] {
    file.seek(to: 0)
    var source = try ArchiveSource(file, format: .zip)
    var (found, count): ([ByteString: [UInt8]], Int) = ([:], 0)
    while let entry = try source.next() {
      count += 1
      guard count <= memberLimit else {
        throw limit("it has more than \(memberLimit) members", file)
      }
      let path = entry.joinedPath
      guard case .file = entry.kind, paths.contains(path) else { continue }
      let content = try content(
        of: &source, limit: path == table ? AndroidResources.Limit.bytes : AndroidXML.Limit.bytes,
        as: path, in: file)
      // Android refuses a package with two as well.
      guard found.updateValue(content, forKey: path) == nil else {
        throw InterchangeError(
          .damaged, action, subject: file.name, reason: "it has two members '\(path)'")
      }
    }
    return found
  }

  private static func content(
    of source: inout ArchiveSource, limit: Int, as path: ByteString, in file: ArchiveFile
  ) throws(InterchangeError) -> [UInt8] {
    var (bytes, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 1 << 16))
    while true {
      var span = buffer.mutableSpan
      let count = try span.withUnsafeMutableBytes { (raw) throws(InterchangeError) in
        try source.read(into: raw)
      }
      if count == 0 { return bytes }
      bytes += buffer.prefix(count)
      guard bytes.count <= limit else {
        throw self.limit("'\(path)' has more than \(limit >> 20) MiB", file)
      }
    }
  }

  private static func limit(_ reason: String, _ file: ArchiveFile) -> InterchangeError {
    InterchangeError(.limitExceeded, action, subject: file.name, reason: reason)
  }
}

extension AndroidPackage {
  /// The values of the manifest's attributes, which can be resources. The table is read only if one
  /// is.
  private struct Resources {
    let file: ArchiveFile
    let bytes: [UInt8]?

    /// Returns a Boolean value.
    func flag(_ value: String?, default usual: Bool) throws(InterchangeError) -> Bool {
      switch value {
      case nil: return usual
      case "true": return true
      case "false": return false
      case let value?:
        guard case .number(let number) = try self.value(value) else { return usual }
        return number != 0
      }
    }

    /// Returns the path of the file that a value refers to, or nil if it refers to none.
    func file(_ value: String?) throws(InterchangeError) -> ByteString? {
      guard let value, value != "true", value != "false" else { return nil }
      guard case .text(let path) = try self.value(value) else { return nil }
      do throws(PathFault) {
        return ByteString(joining: try PathComponents.parse(ByteString(path)))
      } catch {
        throw InterchangeError(
          .damaged, AndroidPackage.action, subject: file.name,
          reason: "the path of its rules cannot be used: \(error.reason)")
      }
    }

    /// Returns the value of a reference such as `@0x7f120001`; other texts are their own value. 0
    /// is the resource `@null`.
    private func value(_ text: String) throws(InterchangeError) -> AndroidResources.Value {
      guard text.hasPrefix("@0x"), let number = UInt32(text.dropFirst(3), radix: 16) else {
        return .text(text)
      }
      if number == 0 { return .other }
      guard let bytes else {
        throw missing(number, "it has no '\(AndroidPackage.table)'")
      }
      let value = try AndroidPackage.parsing(AndroidPackage.table, of: file) {
        () throws(CodecError) in try AndroidResources(bytes).value(of: number)
      }
      guard let value else {
        throw missing(number, "'\(AndroidPackage.table)' has no such resource")
      }
      return value
    }

    private func missing(_ number: UInt32, _ reason: String) -> InterchangeError {
      InterchangeError(
        .damaged, AndroidPackage.action, subject: file.name,
        reason: "its manifest refers to the resource 0x\(String(number, radix: 16)): \(reason)",
        hint: "give the app's base package: packages of parts ('split_…') have no rules")
    }
  }
}
