internal import DeviceScan
internal import SystemIO

/// The signs, among the entries of a directory, that its files belong together. It is deleted
/// completely or not at all, like a database and its log: a program that finds only a part of it
/// reports damage or uses that part, but does not recreate the rest (docs/purge.md, "Units").
struct IndivisibleDirectory: OptionSet {
  let rawValue: UInt8

  /// The directory in which a version control system keeps the history of a working copy; for git,
  /// also a file that names that directory.
  private static let control = IndivisibleDirectory(rawValue: 1)
  /// The mark of a complete installation: of a Python environment (PEP 405), of an unpacked Python
  /// package (`*.dist-info`), or of a Playwright browser. If the mark is present but some files are
  /// missing, the installation is used and not repeated.
  private static let installation = control
  /// A git repository has all three of these (gitrepository-layout(5)), and an OSTree repository
  /// has the last two and a file `config`.
  private static let head = IndivisibleDirectory(rawValue: 2)
  private static let objects = IndivisibleDirectory(rawValue: 4)
  private static let references = IndivisibleDirectory(rawValue: 8)
  /// LevelDB and RocksDB have both of these: the list of a database's files, and its name.
  private static let current = IndivisibleDirectory(rawValue: 16)
  private static let manifest = IndivisibleDirectory(rawValue: 32)
  private static let configuration = IndivisibleDirectory(rawValue: 64)

  private static let names: [(name: ByteString, sign: IndivisibleDirectory)] = [
    (".git", control), (".hg", control), (".svn", control), (".jj", control), (".bzr", control),
    ("_darcs", control), ("HEAD", head), ("objects", objects), ("refs", references),
    ("CURRENT", current), ("config", configuration), ("pyvenv.cfg", installation),
    ("INSTALLATION_COMPLETE", installation),
  ]
  private static let manifestPrefix: ByteString = "MANIFEST-"
  private static let packageSuffix: ByteString = ".dist-info"

  /// Whether a directory is indivisible.
  static func isOne(_ directory: Int, in scan: ContainerScan) -> Bool {
    var found = IndivisibleDirectory()
    for child in scan.entries[directory].children {
      found.formUnion(scan.withName(child) { name in sign(name) })
    }
    return found.contains(control) || found.isSuperset(of: [head, objects, references])
      || found.isSuperset(of: [configuration, objects, references])
      || found.isSuperset(of: [current, manifest])
  }

  private static func sign(_ name: Span<UInt8>) -> IndivisibleDirectory {
    // Few names in caches have one of these lengths and first letters.
    guard name.count >= 3 else { return [] }
    if isPackage(name) { return installation }
    switch (name[0], name.count) {
    case (UInt8(ascii: "M"), 10...): return isManifest(name) ? manifest : []
    case (UInt8(ascii: "."), 3...4), (UInt8(ascii: "_"), 6), (UInt8(ascii: "H"), 4),
      (UInt8(ascii: "o"), 7), (UInt8(ascii: "r"), 4), (UInt8(ascii: "C"), 7),
      (UInt8(ascii: "c"), 6), (UInt8(ascii: "p"), 10), (UInt8(ascii: "I"), 21):
      let bytes = ByteString(name)
      return names.first { $0.name == bytes }?.sign ?? []
    default: return []
    }
  }

  private static func isPackage(_ name: Span<UInt8>) -> Bool {
    let suffix = packageSuffix
    guard name.count > suffix.count, name[name.count - suffix.count] == UInt8(ascii: ".")
    else { return false }
    return ByteString(name).bytes.suffix(suffix.count).elementsEqual(suffix.bytes)
  }

  private static func isManifest(_ name: Span<UInt8>) -> Bool {
    ByteString(name).bytes.starts(with: manifestPrefix.bytes)
  }
}
