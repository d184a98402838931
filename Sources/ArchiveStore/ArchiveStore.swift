// ArchiveStore keeps backups in a repository: a directory of standard containers (docs/repository-format.md).
//
// Content is cut into blobs, named by kind and BLAKE2b-256; a blob that the index or this run knows is
// not stored again. New blobs go as tar members into independent zstd frames, frames into packs, their
// places into an index object, directories into trees of deterministic CBOR, and last of all one
// snapshot, in this order, each durable before the next. So a crash leaves at most unused packs.
//
// Not guaranteed: that a repository whose writer was killed is free of unused bytes (prune removes
// them), that names are readable by programs that refuse bytes which are not UTF-8, or anything about
// a volume that lies about fsync. What is read is checked: bounds before memory is reserved, and each
// blob's hash before its bytes are given. The module knows no policy, no app and no terminal.

/// The bounds of the format, which readers hold before they reserve memory.
public enum FormatLimit {
  /// Bytes of one blob.
  public static let blob = 8 << 20
  /// Plain bytes of one frame.
  public static let frame = 16 << 20
  /// Stored bytes of one frame: one that does not compress is a little larger than its content,
  /// never by a 128th.
  public static let storedFrame = frame + frame / 128
  /// Bytes of a pack's contents table.
  public static let contents = 16 << 20
  /// Bytes of a path within a snapshot.
  public static let path = 64 << 10
  /// Directories within directories.
  public static let depth = 4096
  /// Bytes of repository.json.
  public static let repositoryFile = 1 << 20
  /// Bytes of one snapshot.
  public static let snapshot = 64 << 20
  /// Values in its JSON: what they take in memory.
  public static let snapshotValues = 1 << 21
  /// Bytes of one index object.
  public static let index = 1 << 30
  /// Frames of one pack; an index names a frame by 16 bits.
  public static let framesPerPack = 16_384
  /// Blobs of one pack, so that its contents table keeps its bound.
  public static let blobsPerPack = 262_144
}
