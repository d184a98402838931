internal import Interchange
internal import SystemIO

/// The kinds of archives that exports write.
enum ArchiveKind {
  case tar
  case zip
  case android
  case snap
  case ipa

  /// The subcommand of `export`.
  fileprivate var command: String {
    switch self {
    case .tar: "tar"
    case .zip: "zip"
    case .android: "android"
    case .snap: "snap"
    case .ipa: "ipa"
    }
  }

  /// The words for the archive, with an ending that fits.
  fileprivate var description: String {
    switch self {
    case .tar: "a tar archive (.tar, .tar.gz or .tar.zst)"
    case .zip: "a zip archive (.zip)"
    case .android: "an Android backup (.ab)"
    case .snap: "a snapshot of snapd (.snapshot, or .zip for one snap)"
    case .ipa: "a package (.ipa)"
    }
  }

  /// Whether an ending stands for files of this kind. Packages are zip archives, and exports of
  /// snapd are tar archives.
  fileprivate func fits(_ ending: ArchiveEnding) -> Bool {
    switch (self, ending.kind) {
    case (.ipa, .zip?), (.snap, .zip?): true
    case (.snap, .tar?): ending.compression == ArchiveCompression.none
    default: self == ending.kind && (self != .tar || ending.compression != nil)
    }
  }
}

/// The format that the ending of a file name indicates.
private struct ArchiveEnding {
  /// The endings, in lower case.
  let names: [String]
  /// The kind that one of the exports writes; nil if none does.
  let kind: ArchiveKind?
  /// The compression of a tar archive; nil if no export writes it.
  var compression: ArchiveCompression?

  init(_ names: String..., kind: ArchiveKind?, _ compression: ArchiveCompression? = nil) {
    (self.names, self.kind, self.compression) = (names, kind, compression)
  }

  private static let all = [
    ArchiveEnding(".tar", kind: .tar, ArchiveCompression.none),
    ArchiveEnding(".gz", ".tgz", kind: .tar, .gzip),
    ArchiveEnding(".zst", ".tzst", kind: .tar, .zstd),
    ArchiveEnding(
      ".bz2", ".tbz", ".tbz2", ".tb2", ".xz", ".txz", ".lz", ".tlz", ".lzma", ".lz4", ".lzo",
      ".br", ".z", ".taz", kind: .tar),
    ArchiveEnding(".zip", kind: .zip), ArchiveEnding(".ab", kind: .android),
    ArchiveEnding(".ipa", kind: .ipa),
    ArchiveEnding(".7z", ".rar", ".cpio", ".iso", ".cab", ".xar", ".lha", ".arj", kind: nil),
  ]

  /// Returns the format that a name indicates; nil if its ending is not that of an archive.
  init?(of file: ByteString) {
    guard let name = file.lastComponent?.utf8?.lowercased(),
      let found = Self.all.first(where: { ending in
        ending.names.contains { name.hasSuffix($0) }
      })
    else { return nil }
    self = found
  }
}

extension ArchiveExportOptions {
  /// Refuses a file whose ending indicates another format than is written: a reader that trusts the
  /// name would report damage. Any other ending is accepted.
  ///
  /// - Parameter compression: the compression that an option chooses; nil for that of the name.
  static func requireName(
    _ file: ByteString, of kind: ArchiveKind, _ compression: ArchiveCompression? = nil
  ) throws(UsageError) {
    guard let ending = ArchiveEnding(of: file) else { return }
    let name = ByteString(file.lastComponent?.bytes ?? [])
    guard kind.fits(ending) else {
      throw UsageError(
        .invalidValue, "'\(name)' is not a suitable name for \(kind.description), which is written",
        hint: hint(for: ending, besides: kind))
    }
    // Readers expect that an archive named .tar may be compressed.
    guard kind == .tar, let compression, let promised = ending.compression,
      promised != ArchiveCompression.none, promised != compression
    else { return }
    throw UsageError(
      .optionsConflict,
      "'\(name)' is not a suitable name with '--compress \(compression.rawValue)'",
      hint: "omit '--compress' for \(promised.rawValue), or choose another ending")
  }

  private static func hint(for ending: ArchiveEnding, besides kind: ArchiveKind) -> String {
    if let other = ending.kind, other != kind {
      return "'sandboxctl export \(other.command)' writes \(other.description); or choose another "
        + "ending"
    }
    if ending.kind == .tar {
      return "choose the ending .tar.zst or .tar.gz, or write to '-' and compress that"
    }
    return "no export writes that format: choose another ending"
  }
}
