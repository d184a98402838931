// ArchiveStore keeps backups in a repository: a directory of standard containers
// (docs/repository-format.md).
//
// Content is cut into blobs, named by kind and BLAKE2b-256. A blob that the index or the current
// run already has is not stored again. New blobs become tar members in independent zstd frames,
// frames form packs, an index object records the locations, and directories become trees of
// deterministic CBOR. One snapshot completes the run. Each step is durable before the next, so a
// crash leaves at most unused packs.
//
// Not guaranteed: that a repository has no unused bytes after a writer was killed (prune removes
// them), that programs which refuse non-UTF-8 names can read all names, and durability on a volume
// that ignores fsync. All input is verified: bounds before memory is reserved, and the hash of each
// blob before its bytes are returned. The module has no knowledge of policies, apps or terminals.

/// The limits of the format, which readers enforce before they reserve memory.
public enum FormatLimit {
  /// The maximum size of a blob, in bytes.
  public static let blob = 8 << 20
  /// The maximum decoded size of a frame, in bytes.
  public static let frame = 16 << 20
  /// The maximum stored size of a frame, in bytes. Incompressible content grows by less than 1/128.
  public static let storedFrame = frame + frame / 128
  /// The maximum size of a pack's contents table, in bytes.
  public static let contents = 16 << 20
  /// The maximum length of a path in a snapshot, in bytes.
  public static let path = 64 << 10
  /// The maximum depth of nested directories.
  public static let depth = 4096
  /// The maximum size of repository.json, in bytes.
  public static let repositoryFile = 1 << 20
  /// The maximum size of a snapshot, in bytes.
  public static let snapshot = 64 << 20
  /// The maximum number of values in a snapshot's JSON, which bounds memory.
  public static let snapshotValues = 1 << 21
  /// The maximum size of an index object, in bytes.
  public static let index = 1 << 30
  /// The maximum number of frames in a pack; an index stores a frame number in 16 bits.
  public static let framesPerPack = 16_384
  /// The maximum number of blobs in a pack, so that its contents table stays within its limit.
  public static let blobsPerPack = 262_144
}
