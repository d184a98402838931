// What a package's own files say of the app: its Info.plist, those of its extensions, and
// entitlements wherever they lie. Whoever reads the package gives the files that `wants` names, then
// the programs that `programs()` names, then takes the description. Nothing is opened here, and what
// is held is bounded.
public import SystemIO

/// Gathers what tells of the app in a package.
public struct PackageInspection {
  /// The most bytes that the telling files of a package may have together; real ones have less than
  /// one megabyte.
  public static let limit = 64 << 20

  let origin: PackageOrigin
  /// The bundle's folder: `Example.app`.
  let bundle: ByteString
  var survey: Survey
  private(set) var files: [ByteString: [UInt8]] = [:]
  private var held = 0
  /// The bundles: the app's first, then its extensions' by path.
  private(set) var parts: [Part] = []

  /// A bundle of the package: the app's own or an extension's.
  struct Part {
    let bundle: ByteString
    let shape: BundleShape
    let info: BundleInfo
    var facts: MachO.Facts?
    /// The directory of its program and of what lies beside it.
    var programs: ByteString {
      shape == .contents
        ? bundle.appending(BundleShape.contentsDirectory).appending(PackageLocations.programs)
        : bundle
    }
    /// Its program's path; nil when none is named.
    var program: ByteString? { info.executable.map { programs.appending($0) } }
  }

  /// Begins with the bundle's folder: `Example.app`.
  public init(of origin: PackageOrigin, bundle: ByteString) {
    self.origin = origin
    self.bundle = bundle
    survey = Survey(root: origin.path)
  }

  /// Whether the bytes of this file are wanted.
  public func wants(_ path: ByteString) -> Bool { PackageLocations.isTelling(path) }

  /// The most bytes that such a file may have; a larger one is told of by `skip`.
  public static var fileLimit: Int { Survey.propertyListLimit }

  /// Takes the bytes of a file that `wants` named.
  ///
  /// - Throws: `package` when these files have more than `limit` bytes together.
  public mutating func add(_ path: ByteString, _ bytes: [UInt8]) throws(ModelError) {
    held += bytes.count
    guard held <= Self.limit else {
      throw fault("the files that say what it is have more than \(Self.limit) bytes together")
    }
    files[path] = bytes
  }

  /// Is told of a wanted file that is too large to be read.
  ///
  /// - Throws: `package` when the file is the app's own Info.plist.
  public mutating func skip(_ path: ByteString, size: UInt64) throws(ModelError) {
    let reason = "it has \(size) bytes, and at most \(Self.fileLimit) are read of such a file"
    survey.warn(.unusableFile, path, reason)
    let place = PackageLocations.place(of: path)
    if place.bundle == bundle, place.inner == [PackageLocations.info] {
      throw fault("its '\(path)' cannot be used: \(reason)")
    }
  }

  /// Reads the files and gives the paths of the programs that may tell of entitlements.
  ///
  /// - Throws: `package` when the app's Info.plist is missing or cannot be used.
  public mutating func programs() throws(ModelError) -> [ByteString] {
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

  /// Looks at a program that `programs()` named.
  ///
  /// - Throws: what reading it throws.
  public mutating func examine<Source: ByteSource & ~Copyable>(
    _ program: ByteString, _ source: borrowing Source
  ) throws(SystemError) {
    let facts = try MachO.facts(of: source)
    for index in parts.indices where parts[index].program == program { parts[index].facts = facts }
    if facts.isEncrypted {
      survey.note(
        .encrypted, program,
        "the program is encrypted (FairPlay): it runs only where its buyer's key is")
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
        hint: "give a whole .app, as it lies in DerivedData or in an .ipa")
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
    ModelError(.package, "open the package", on: origin.path, reason, hint: hint)
  }
}
