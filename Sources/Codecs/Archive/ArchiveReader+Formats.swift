internal import CArchive

// The formats and compressions that are enabled.
extension ArchiveReader {
  /// The formats of a reader.
  enum Formats { case tar, zip, all }

  static func makeReader(_ formats: Formats) throws(CodecError) -> OpaquePointer {
    guard let archive = unsafe archive_read_new() else {
      throw CodecError(.library, in: .archive, reason: "not enough memory for the reader")
    }
    switch formats {
    case .tar: unsafe archive_read_support_format_tar(archive)
    case .zip: unsafe archive_read_support_format_zip(archive)
    case .all: unsafe enableFormats(in: archive)
    }
    if formats != .zip { unsafe enableFilters(in: archive) }
    return unsafe archive
  }

  private static func enableFormats(in archive: OpaquePointer) {
    unsafe archive_read_support_format_zip(archive)
    unsafe archive_read_support_format_tar(archive)
    unsafe archive_read_support_format_cpio(archive)
    unsafe archive_read_support_format_7zip(archive)
    unsafe archive_read_support_format_ar(archive)
    unsafe archive_read_support_format_cab(archive)
    unsafe archive_read_support_format_iso9660(archive)
    unsafe archive_read_support_format_lha(archive)
    unsafe archive_read_support_format_rar(archive)
    unsafe archive_read_support_format_rar5(archive)
    unsafe archive_read_support_format_warc(archive)
    unsafe archive_read_support_format_xar(archive)
  }

  private static func enableFilters(in archive: OpaquePointer) {
    unsafe archive_read_support_filter_bzip2(archive)
    unsafe archive_read_support_filter_compress(archive)
    unsafe archive_read_support_filter_gzip(archive)
    unsafe archive_read_support_filter_lz4(archive)
    unsafe archive_read_support_filter_lzip(archive)
    unsafe archive_read_support_filter_lzma(archive)
    unsafe archive_read_support_filter_rpm(archive)
    unsafe archive_read_support_filter_xz(archive)
    unsafe archive_read_support_filter_zstd(archive)
  }
}
