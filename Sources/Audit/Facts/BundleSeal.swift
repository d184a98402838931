internal import Codecs
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// The list of a bundle's files in its signature, `_CodeSignature/CodeResources` (Technical Note
/// TN2206, Signature resource envelope).
///
/// Names are compared, and the hashes of the files that may have changed since the list was written
/// (`SealedContent`). A list without rules was not written by `codesign` and proves nothing.
struct BundleSeal {
  /// The files in the list, each with whether it may be missing.
  private let files: [ByteString: Bool]
  /// The hashes of the files that have one; links and nested code have none.
  let hashes: [ByteString: Hash]

  /// The hash of a file's content.
  struct Hash: Hashable {
    let function: MessageDigest.Function
    let digest: [UInt8]

    /// Reads the strongest known hash of a member: `hash2` is SHA-256, `hash` and a member that is
    /// data are SHA-1.
    init?(_ member: PropertyList) {
      let values: [(PropertyList?, MessageDigest.Function)] = [
        (member["hash2"], .sha256), (member["hash"], .sha1), (member, .sha1),
      ]
      for (value, function) in values {
        guard case .data(let bytes)? = value, bytes.count == function.size else { continue }
        (self.function, digest) = (function, bytes)
        return
      }
      return nil
    }
  }

  init?(_ list: PropertyList) {
    guard list["rules"]?.dictionaryValue != nil || list["rules2"]?.dictionaryValue != nil,
      let members = (list["files2"] ?? list["files"])?.dictionaryValue
    else { return nil }
    var files: [ByteString: Bool] = [:]
    // The older form has additional names, but does not show which of them are optional in the
    // newer one.
    for member in list["files"]?.dictionaryValue ?? [] { files[ByteString(member.key)] = true }
    for member in members {
      files[ByteString(member.key)] = member.value["optional"] == .bool(true)
    }
    self.files = files
    var hashes: [ByteString: Hash] = [:]
    for member in members { hashes[ByteString(member.key)] = Hash(member.value) }
    self.hashes = hashes
  }

  /// The differences between a bundle and its list.
  struct Differences {
    /// The paths that the list has and the bundle lacks, sorted.
    var missing: [ByteString] = []
    /// The entries that the list lacks, by their indexes in the scan.
    var added: [(path: ByteString, index: Int)] = []
    /// The files whose content differs from the list, by path.
    var altered: [(path: ByteString, index: Int)] = []

    var isEmpty: Bool { missing.isEmpty && added.isEmpty && altered.isEmpty }
  }

  /// Compares the list with the files of a bundle.
  ///
  /// - Parameters:
  ///   - top: The directory to which the paths in the list are relative.
  ///   - executable: The bundle's executable, which the signature itself covers.
  func differences(
    in scan: ContainerScan, at top: Int, executable: ByteString?
  ) -> Differences {
    var differences = Differences()
    var present: Set<ByteString> = []
    var pending: [(index: Int, path: ByteString)] = [(top, "")]
    while let (directory, path) = pending.popLast() {
      for child in scan.entries[directory].children {
        let inner = path.appending(scan.name(child))
        present.insert(inner)
        if scan.entries[child].status.kind == .directory {
          if !isCovered(child, inner, in: scan) { pending.append((child, inner)) }
        } else if files[inner] == nil, !Self.isExempt(inner), inner != executable {
          differences.added.append((inner, child))
        }
      }
    }
    differences.added.sort { $0.path < $1.path }
    // A hostile list can have many names that do not exist, in directories with many entries.
    let lookup = EntryLookup(scan)
    differences.missing = files.compactMap { path, isOptional in
      isOptional || present.contains(path) || Self.isThere(path, lookup, at: top) ? nil : path
    }.sorted()
    return differences
  }

  /// Whether a directory is not entered: one that is in the list as a unit, has its own signature,
  /// or is not part of the list.
  private func isCovered(_ index: Int, _ path: ByteString, in scan: ContainerScan) -> Bool {
    if files[path] != nil || Self.unlisted.contains(path) { return true }
    return scan.entries[index].children.contains { scan.name($0) == "_CodeSignature" }
  }

  /// Whether a file of the list exists in a directory that was not entered.
  private static func isThere(_ path: ByteString, _ lookup: EntryLookup, at top: Int) -> Bool {
    var found: Int? = top
    for name in path.components {
      guard let directory = found else { return false }
      found = lookup.child(named: name, of: directory)
    }
    return found != nil
  }

  /// Directories that no list contains: the signature itself, and those that the store adds to a
  /// purchased app.
  private static let unlisted: Set<ByteString> = ["_CodeSignature", "SC_Info", "_MASReceipt"]

  /// Whether the usual rules of a list omit a file.
  private static func isExempt(_ path: ByteString) -> Bool {
    switch path {
    case "Info.plist", "PkgInfo", "version.plist", "CodeResources": return true
    default: break
    }
    let name = path.lastComponent ?? ""
    if name == ".DS_Store" { return true }
    return name == "locversion.plist" && path.parent.hasSuffix(".lproj")
  }
}
