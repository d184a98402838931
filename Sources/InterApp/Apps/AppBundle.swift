internal import Codecs
package import SandboxModel
package import SystemIO

/// An app's bundle on a device.
package struct AppBundle: Sendable {
  /// The names of the directories from the container to the one with the Info.plist.
  private let names: [ByteString]
  private let container: ByteString

  /// Creates the bundle of a bundle container, or returns nil if it has none.
  package init?(_ container: Container, _ layout: Layout) {
    guard container.kind == .bundle, let bundle = container.bundleDirectory else { return nil }
    self.container = container.absolutePath
    names = layout == .macOS ? [bundle, "Contents"] : [bundle]
  }

  /// The absolute path of the directory with the Info.plist.
  package var directory: ByteString { names.reduce(container) { $0.appending($1) } }

  /// The maximum size of an Info.plist in bytes.
  static let infoLimit = 8 << 20

  /// Opens the directory with the Info.plist. Links inside the container are not followed.
  package func open() throws(SystemError) -> Directory {
    var directory = try Directory.open(resolved: container)
    for name in names { directory = try directory.directory(name) }
    return directory
  }

  /// Reads the declarations.
  ///
  /// - Throws: `failed` if the Info.plist is missing, too large, or not a dictionary.
  func declarations(
    of app: BundleIdentifier, name: ByteString?
  ) throws(OperationError) -> AppDeclarations {
    let file = directory.appending("Info.plist")
    let bundle = try Self.reporting { () throws(SystemError) in try open() }
    let bytes = try Self.reporting { () throws(SystemError) in
      try Self.bytes(of: "Info.plist", in: bundle, limit: Self.infoLimit)
    }
    guard let bytes else {
      throw Self.unusable(file, "it is not a file of at most \(Self.infoLimit) bytes")
    }
    var declarations = AppDeclarations(app, name: name, info: try Self.dictionary(bytes, of: file))
    if declarations.urlTypes.contains(where: { $0.name != nil }) {
      for finding in Self.localizationFindings(declarations, in: bundle) {
        declarations.add(finding)
      }
    }
    return declarations
  }

  /// Runs system calls whose failure means that the app cannot be read.
  static func reporting<Result: ~Copyable>(
    _ body: () throws(SystemError) -> Result
  ) throws(OperationError) -> Result {
    do throws(SystemError) { return try body() } catch { throw OperationError(error) }
  }

  /// Reads a regular file, or returns nil if it is not a regular file or has more than `limit`
  /// bytes.
  static func bytes(
    of name: ByteString, in directory: borrowing Directory, limit: Int
  ) throws(SystemError) -> [UInt8]? {
    let file = try directory.fileUntouched(name)
    guard try file.status().kind == .file else { return nil }
    return try file.readAll(limit: limit)
  }

  /// Returns the dictionary in the bytes of an Info.plist.
  ///
  /// - Throws: `failed` if they are not a property list, or not a dictionary.
  static func dictionary(
    _ bytes: [UInt8], of file: ByteString
  ) throws(OperationError) -> PropertyList {
    let list: PropertyList
    do throws(CodecError) {
      list = try PropertyList(reading: bytes, limits: .init(bytes: infoLimit))
    } catch { throw unusable(file, ByteString(error.reason).description) }
    guard list.dictionaryValue != nil else {
      throw unusable(file, "it is a property list of the type \(list.kind), not a dictionary")
    }
    return list
  }

  static func unusable(_ file: ByteString, _ reason: String) -> OperationError {
    OperationError(
      .failed, code: .invalidPropertyList, "read the declarations in", subject: file,
      reason: reason)
  }
}

extension AppBundle {
  /// The maximum number of localizations whose strings are read.
  private static let localizationLimit = 200

  /// Checks that each localization names the URL types of an app: the value of CFBundleURLName is a
  /// key of `InfoPlist.strings` (Information Property List Key Reference, CFBundleURLTypes).
  fileprivate static func localizationFindings(
    _ declarations: AppDeclarations, in bundle: borrowing Directory
  ) -> [DeclarationFinding] {
    let app = declarations.app
    let localizations = ((try? bundle.names()) ?? []).filter { $0.hasSuffix(".lproj") }
    var findings: [DeclarationFinding] = []
    for localization in localizations.prefix(localizationLimit) {
      guard let directory = try? bundle.directory(localization),
        (try? directory.statusIfPresent(strings)) != .some(nil)
      else { continue }
      let place = "\(localization)/\(strings)"
      let read = try? bytes(of: strings, in: directory, limit: StringsFile.limit)
      guard let bytes = read ?? nil, let keys = StringsFile.keys(bytes) else {
        findings.append(
          DeclarationFinding(
            .warning, of: app, at: place, reason: "it is not a readable strings file"))
        continue
      }
      for type in declarations.urlTypes {
        guard let name = type.name, !keys.contains(name) else { continue }
        findings.append(
          DeclarationFinding(
            .note, of: app, at: place,
            reason: "it has no text for the URL type '\(name)' (\(type.key))"))
      }
    }
    return findings
  }

  private static let strings: ByteString = "InfoPlist.strings"
}
