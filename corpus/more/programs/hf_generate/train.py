"""Clean: transformers' generate() with its DynamicCache, 14 requests of various lengths."""
import random, torch, probe
from transformers import LlamaConfig, LlamaForCausalLM

rng = random.Random(6)
config = LlamaConfig(vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4,
                     num_key_value_heads=4, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=None)
model = LlamaForCausalLM(config).cuda().eval()
answers = []
probe.start()
for i in range(probe.steps(14)):
    prompt = torch.randint(2, 1000, (4, rng.randrange(10, 40)), device="cuda")
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=rng.randrange(12, 24), do_sample=True)
    answers.append(out.tolist())
    probe.step(i)
    if i in (4, 9, 13):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
