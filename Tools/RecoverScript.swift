/// The independent reader of the repository format from this directory.
public enum RecoverScript {
  /// The bytes of `recover.py`, which each new repository contains.
  public static let bytes: [UInt8] = PackageResources.recover_py
}
