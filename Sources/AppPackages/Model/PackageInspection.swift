// The information about an app in its package: its Info.plist, those of its extensions, and
// entitlements from all sources. The caller adds the files that `wants` selects, then examines the
// executables that `programs()` returns, then requests the description. This type opens no files,
// and its memory use is bounded.
package import DeviceDiscovery
package import SandboxModel
package import SystemIO

/// Collects the information about the app in a package.
package struct PackageInspection {
  /// The maximum total size in bytes of the files that `wants` selects; real packages have less
  /// than one megabyte.
  package static let limit = 64 << 20

  let origin: PackageOrigin
  /// The bundle's directory, `Example.app`.
  let bundle: ByteString
  var survey: Survey
  private(set) var files: [ByteString: [UInt8]] = [:]
  private var held = 0
  /// The bundles: the app's first, then its extensions' sorted by path.
  private(set) var parts: [Part] = []

  /// A bundle in the package: that of the app or of an extension.
  struct Part {
    let bundle: ByteString
    let shape: BundleShape
    let info: BundleInfo
    var facts: MachO.Facts?
    /// The directory of its executable.
    var programs: ByteString {
      shape == .contents
        ? bundle.appending(BundleShape.contentsDirectory).appending(PackageLocations.programs)
        : bundle
    }
    /// The path of its executable, or nil if it names none.
    var program: ByteString? { info.executable.map { programs.appending($0) } }
  }

  /// Creates an inspection; `bundle` is the bundle's directory, `Example.app`.
  package init(of origin: PackageOrigin, bundle: ByteString) {
    self.origin = origin
    self.bundle = bundle
    survey = Survey(root: origin.path)
  }

  /// Whether the inspection needs the content of this file.
  package func wants(_ path: ByteString) -> Bool { PackageLocations.describesPackage(path) }

  /// The maximum size of such a file in bytes; larger ones are reported with `skip`.
  package static var fileLimit: Int { Survey.propertyListLimit }

  /// Adds the content of a file that `wants` selected.
  ///
  /// - Throws: `package` if these files together exceed `limit` bytes.
  package mutating func add(_ path: ByteString, _ bytes: [UInt8]) throws(ModelError) {
    held += bytes.count
    guard held <= Self.limit else {
      throw fault("the files that describe it have more than \(Self.limit) bytes in total")
    }
    files[path] = bytes
  }

  /// Reports a file that `wants` selected and that is too large to read.
  ///
  /// - Throws: `package` if the file is the app's Info.plist.
  package mutating func skip(_ path: ByteString, size: UInt64) throws(ModelError) {
    let reason = "it has \(size) bytes, more than the limit of \(Self.fileLimit)"
    survey.warn(.unusableFile, at: path, because: reason)
    let place = PackageLocations.place(of: path)
    if place.bundle == bundle, place.inner == [PackageLocations.info] {
      throw fault("its '\(path)' cannot be used: \(reason)")
    }
  }

  /// Evaluates the files and returns the paths of the executables to examine for entitlements.
  ///
  /// - Throws: `package` if the app's Info.plist is missing or invalid.
  package mutating func programs() throws(ModelError) -> [ByteString] {
    parts = [try app()]
    for path in files.keys.sorted() {
      let place = PackageLocations.place(of: path)
      guard place.inner == [PackageLocations.info], place.bundle != bundle,
        let info = info(at: path)
      else { continue }
      parts.append(Part(bundle: place.bundle, shape: place.shape, info: info))
    }
    return parts.compactMap { part in
      guard let name = part.info.executable, let path = part.program else { return nil }
      return survey.isProgramName(name, as: path) ? path : nil
    }
  }

  /// Reads the entitlements of an executable that `programs()` returned.
  ///
  /// - Throws: The errors of the source.
  package mutating func examine<Source: ByteSource & ~Copyable>(
    _ program: ByteString, _ source: borrowing Source
  ) throws(SystemError) {
    let facts = try MachO.facts(of: source)
    for index in parts.indices where parts[index].program == program { parts[index].facts = facts }
    if facts.isEncrypted {
      survey.note(
        .encrypted, at: program,
        because:
          "the executable is encrypted (FairPlay): it runs only on devices with the buyer's key")
    }
  }

  private mutating func app() throws(ModelError) -> Part {
    let flat = bundle.appending(PackageLocations.info)
    let contents = bundle.appending(BundleShape.contentsDirectory).appending(PackageLocations.info)
    let shape: BundleShape = files[flat] == nil && files[contents] != nil ? .contents : .flat
    let path = shape == .flat ? flat : contents
    guard files[path] != nil else {
      throw fault(
        "its bundle '\(bundle)' has no Info.plist",
        hint: "specify a complete .app directory, such as one from DerivedData or an .ipa")
    }
    guard let info = info(at: path) else {
      throw fault(
        "its '\(path)' cannot be used: \(survey.findings.last?.reason ?? "it is damaged")")
    }
    return Part(bundle: bundle, shape: shape, info: info)
  }

  private mutating func info(at path: ByteString) -> BundleInfo? {
    guard let bytes = files[path], let list = survey.dictionary(bytes, as: path) else { return nil }
    return survey.bundleInfo(of: list, as: path)
  }

  func fault(_ reason: String, hint: String? = nil) -> ModelError {
    ModelError(.package, "open the package", on: origin.path, reason: reason, hint: hint)
  }
}
