internal import Codecs
package import SystemIO

/// The rules of Auto Backup from files: those of packages for their apps, those of XML files for
/// all others.
package struct AutoBackupRuleSet: Sendable {
  /// The rules of the XML files; nil if there is none.
  private var general: AutoBackupRules?
  /// The packages of apps by their names.
  package private(set) var packages: [ByteString: AndroidPackage] = [:]

  /// The remarks on parts of the files that Android ignores.
  package private(set) var remarks: [FileRemark] = []

  /// A remark on a file.
  package struct FileRemark: Sendable, CustomStringConvertible {
    package let file: ByteString
    package let remark: AutoBackupRemark

    /// The position for the order of remarks: line and column, or the offset.
    fileprivate var place: (Int, Int) {
      switch remark.position {
      case .mark(let mark): (mark.line, mark.column)
      case .offset(let offset): (0, offset)
      }
    }

    /// A line with the file, the place, the rule, the problem and its effect.
    package var description: String {
      let place =
        switch remark.position {
        case .mark(let mark): "line \(mark.line)"
        case .offset(let offset): "byte \(offset)"
        }
      return "\(file), \(place): \(remark.rule): \(remark.problem.clause)"
    }
  }

  private static let action = "read the rules"

  /// Creates an empty set.
  package init() {}

  /// Whether the set has no rules.
  package var isEmpty: Bool { general == nil && packages.isEmpty }

  /// Returns the rules of an app, or nil if there are none for it.
  package func rules(of package: ByteString) -> AutoBackupRules? {
    packages[package]?.rules ?? general
  }

  /// Adds the rules of a file: a package (APK), or an XML file as `android:fullBackupContent` or
  /// `android:dataExtractionRules` names it, as text or in binary form.
  ///
  /// - Throws: `exists` for second rules of the same kind; the errors of `AndroidPackage`;
  ///   `damaged` for a file that Android refuses as well.
  package mutating func add(_ path: ByteString) throws(InterchangeError) {
    let file: ArchiveFile
    do throws(SystemError) { file = try ArchiveFile(path: path) } catch {
      throw InterchangeError(error, Self.action, subject: path)
    }
    let bytes = try Self.content(of: file)
    if bytes.starts(with: Self.packageMagic) {
      let package = try AndroidPackage(file)
      guard packages.updateValue(package, forKey: package.name) == nil else {
        throw Self.repeated(path, "there are two packages of '\(package.name)'")
      }
      addRemarks(of: package.rules, in: path)
      return
    }
    let isFirst: Bool
    do throws(CodecError) { isFirst = try addXML(bytes, of: path) } catch {
      throw InterchangeError(error, Self.action, subject: path)
    }
    if !isFirst { throw Self.repeated(path, "there are two files of this kind") }
  }

  private mutating func addRemarks(of rules: AutoBackupRules, in file: ByteString) {
    remarks += rules.remarks.map { FileRemark(file: file, remark: $0) }
      .sorted { $0.place < $1.place }
  }

  /// The first bytes of a zip archive.
  private static let packageMagic = Array("PK".utf8)

  /// Adds the rules of an XML file. Returns false if there are rules of this kind.
  private mutating func addXML(
    _ bytes: [UInt8], of file: ByteString
  ) throws(CodecError) -> Bool {
    // Android 11 and earlier observe the older file for transfers as well.
    var rules = general ?? AutoBackupRules(targetVersion: AutoBackupRules.separateTransfers - 1)
    if try AndroidXML(bytes).name == "data-extraction-rules" {
      if rules.extraction != nil { return false }
      rules.targetVersion = AutoBackupRules.separateTransfers
      let extraction = try AutoBackupRules.DataExtraction(bytes)
      addRemarks(of: AutoBackupRules(extraction: extraction), in: file)
      rules.extraction = extraction
    } else {
      if case .rules = rules.fullBackup { return false }
      let content = AutoBackupRules.FullBackup.rules(
        try AutoBackupRules.Section(fullBackupContent: bytes))
      addRemarks(of: AutoBackupRules(fullBackup: content), in: file)
      rules.fullBackup = content
    }
    general = rules
    return true
  }

  private static func repeated(_ path: ByteString, _ reason: String) -> InterchangeError {
    InterchangeError(.exists, action, subject: path, reason: reason, hint: "give one of them")
  }

  /// Returns the content of an XML file; of a package, and of a file that is too large, the
  /// beginning.
  private static func content(of file: ArchiveFile) throws(InterchangeError) -> [UInt8] {
    var (bytes, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 1 << 16))
    while bytes.count <= AndroidXML.Limit.bytes, !bytes.starts(with: packageMagic) {
      let count = file.read(into: &buffer)
      if count > 0 { bytes += buffer.prefix(count) } else if count == 0 { break }
      if let failure = file.failure {
        throw InterchangeError(failure, action, subject: file.name)
      }
    }
    return bytes
  }
}
