/// The independent reader of the repository format, as it lies in this directory.
public enum RecoverScript {
  /// The bytes of `recover.py`, which is put into each new repository.
  public static let bytes: [UInt8] = PackageResources.recover_py
}
