// Recommendations on Android, or on any JVM, from a folder that `ownview export --onnx` wrote.
// Gradle: implementation("com.microsoft.onnxruntime:onnxruntime-android:1.30.0"), on a JVM :onnxruntime.

import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OrtEnvironment
import java.nio.LongBuffer

/** The model of a file; `close` it when it is not needed any more. */
class Recommender(model: ByteArray) : AutoCloseable {
    private val environment = OrtEnvironment.getEnvironment()
    private val session = environment.createSession(model)

    /** The k best items, by position in items.csv, for a history of such positions, the oldest first. */
    fun recommend(history: LongArray, k: Long = 10, afterPause: Boolean = false): LongArray {
        val given = mutableMapOf("history" to whole(history), "k" to whole(longArrayOf(k)))
        // A blend asks whether the latest item is from before a pause.
        if ("after_pause" in session.inputNames) {
            given["after_pause"] = whole(longArrayOf(if (afterPause) 1 else 0))
        }
        try {
            val found = session.run(given, setOf("best"))
            try {
                val best = (found.get(0) as OnnxTensor).longBuffer
                return LongArray(best.remaining()).also { best.get(it) }
            } finally {
                found.close()
            }
        } finally {
            given.values.forEach { it.close() }
        }
    }

    override fun close() = session.close()

    private fun whole(values: LongArray) =
        OnnxTensor.createTensor(environment, LongBuffer.wrap(values), longArrayOf(values.size.toLong()))
}
